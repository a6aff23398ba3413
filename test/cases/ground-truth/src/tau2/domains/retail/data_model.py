"""Records of a small shop, in the layout that the ground truth's runner reads."""


class Record:
    def __init__(self, values):
        self.values = values

    def __eq__(self, other):
        return isinstance(other, Record) and self.values == other.values

    @classmethod
    def model_validate(cls, values):
        return cls(dict(values))

    def model_dump(self, mode="python"):
        return dict(self.values)


class ShopDB:
    model_fields = {"orders": None, "users": None}

    def __init__(self, raw):
        self.orders = {key: Record.model_validate(one) for key, one in raw["orders"].items()}
        self.users = {key: Record.model_validate(one) for key, one in raw["users"].items()}

    @classmethod
    def model_validate(cls, raw):
        return cls(raw)
