"""The client against a small scripted service: what it sends, when it repeats itself, and what it raises."""

from __future__ import annotations

import asyncio
import json
import threading
import unittest
import warnings
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Callable, Dict, List, Optional, Tuple

from reversi_sdk import Blocked, Client, OutcomeNotRecorded, ReadFailed, ServiceError, Uncertain
from reversi_sdk.client import new_run_id
from reversi_sdk.decorate import blocked_text
from reversi_sdk.reading import Reading

APPROVAL = "apr_0191f3a0-0000-4000-8000-000000000001"
PENDING = f"approval required: request {APPROVAL} is pending an operator decision; retry after it is approved"
Answer = Tuple[int, Any]


class Service:
    """Answers each request with a function of (method, path, body, headers); None closes the connection."""

    def __init__(self, answer: Callable[[str, str, Any, Any], Optional[Answer]]) -> None:
        self.seen: List[Dict[str, Any]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                service.seen.append({"method": self.command, "path": self.path, "body": body, "headers": self.headers})
                given = answer(self.command, self.path, body, self.headers)
                if given is None:
                    return
                status, value = given
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                if status in (301, 307):
                    self.send_header("location", "http://127.0.0.1:9/elsewhere")
                if status == 429:
                    self.send_header("retry-after", "7")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def ordinary(method: str, path: str, body: Any, _headers: Any) -> Answer:
    if path == "/v1/runs" and method == "POST":
        return 201, {"run_id": body["run_id"], "mode": "enforce", "scope_seal": "sha256:00"}
    if path.endswith("/intents"):
        return 200, {"decision": "allow", "step": 0}
    if path.endswith("/outcome"):
        return 200, {"step": 0, "status": body["status"]}
    return 404, {"error": "unknown"}


def nested(levels: int) -> List[Any]:
    return [] if levels == 1 else [nested(levels - 1)]


class ClientCase(unittest.TestCase):
    def serve(self, answer: Callable[..., Optional[Answer]] = ordinary, **options: Any) -> Tuple[Service, Client]:
        service = Service(answer)
        self.addCleanup(service.close)
        self.slept: List[float] = []
        return service, Client(service.url, "secret-key", sleep=self.slept.append, **{"timeout": 5.0, **options})

    def after_opening(self, answer: Callable[..., Optional[Answer]]) -> Callable[..., Optional[Answer]]:
        def routed(method: str, path: str, body: Any, headers: Any) -> Optional[Answer]:
            if path == "/v1/runs":
                return ordinary(method, path, body, headers)
            return answer(method, path, body, headers)

        return routed


class Calls(ClientCase):
    def test_a_call_that_is_allowed(self) -> None:
        service, client = self.serve()
        run = client.run(permissions=["crm.write"], reason="demo")
        self.assertEqual(run.call("crm.create", {"name": "x"}, "asked to", lambda: {"id": 7}, depends_on=[]), {"id": 7})
        opened, intent, outcome = service.seen
        self.assertEqual(opened["headers"]["authorization"], "Bearer secret-key")
        self.assertEqual(opened["body"], {"permissions": ["crm.write"], "run_id": run.run_id, "reason": "demo"})
        self.assertEqual(intent["path"], f"/v1/runs/{run.run_id}/intents")
        asked = {"tool": "crm.create", "args": {"name": "x"}, "reason": "asked to", "depends_on": []}
        self.assertEqual(intent["body"], asked)
        self.assertEqual(outcome["path"], f"/v1/runs/{run.run_id}/steps/0/outcome")
        self.assertEqual(outcome["body"], {"status": "succeeded", "result": {"id": 7}})
        self.assertNotEqual(intent["headers"]["idempotency-key"], outcome["headers"]["idempotency-key"])

    def test_a_blocked_call_never_runs(self) -> None:
        reasons = ["no manifest is registered for this tool", PENDING]
        for answer in ({"decision": "block"}, {"decision": "perhaps", "step": 1}, {"decision": "allow"}):
            answer = {**answer, "reasons": reasons, "hints": ["do less"]}
            _, client = self.serve(self.after_opening(lambda *_, answer=answer: (200, answer)))
            with self.assertRaises(Blocked) as caught:
                client.run(permissions=[]).call("t", {}, "r", lambda: self.fail("it ran"))
            self.assertEqual(caught.exception.reasons, reasons)
            self.assertEqual(caught.exception.approval_id, APPROVAL)
            self.assertEqual(caught.exception.hints, ["do less"])

    def test_would_block_runs(self) -> None:
        advice = {"decision": "would_block", "step": 0, "reasons": ["scope"]}
        _, client = self.serve(lambda m, p, b, h: (200, advice) if "intents" in p else ordinary(m, p, b, h))
        self.assertEqual(client.run(permissions=[], mode="observe").call("t", {}, "r", lambda: 5), 5)

    def test_how_a_tool_ends(self) -> None:
        endings = (
            (ValueError("no"), "failed"),
            (Uncertain("lost"), "uncertain"),
            (TimeoutError(), "uncertain"),
            (KeyboardInterrupt(), "uncertain"),
        )
        for error, status in endings:
            service, client = self.serve()

            def tool(error: BaseException = error) -> None:
                raise error

            with self.assertRaises(type(error)):
                client.run(permissions=[]).call("t", {}, "r", tool)
            self.assertEqual(service.seen[-1]["body"]["status"], status)
            self.assertIn(type(error).__name__, service.seen[-1]["body"]["error"])

    def test_a_result_that_is_no_json_still_succeeds(self) -> None:
        for result in (object(), float("nan"), "x" * 1_100_000):
            service, client = self.serve()
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                self.assertIs(client.run(permissions=[]).call("t", {}, "r", lambda result=result: result), result)
            self.assertEqual(service.seen[-1]["body"], {"status": "succeeded"})
            self.assertEqual(len(warned), 1)

    def test_what_cannot_be_kept_exactly_is_not_reported(self) -> None:
        for result in ({"id": 2**60}, 1e20, {1: 1, "1": 2}, {"__proto__": 1}, {"cut": "\ud83d"}, nested(64)):
            service, client = self.serve()
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                self.assertIs(client.run(permissions=[]).call("t", {}, "r", lambda result=result: result), result)
            self.assertEqual(service.seen[-1]["body"], {"status": "succeeded"})
            self.assertEqual(len(warned), 1)
        service, client = self.serve()
        client.run(permissions=[]).call("t", {}, "r", lambda: [nested(62), 1.5])
        self.assertEqual(service.seen[-1]["body"]["result"], [nested(62), 1.5])

        def cut() -> None:
            raise ValueError("cut \ud83d")

        with self.assertRaisesRegex(ValueError, "cut"):
            client.run(permissions=[]).call("t", {}, "r", cut)
        self.assertEqual(service.seen[-1]["body"], {"status": "failed", "error": "ValueError: cut \ufffd"})

    def test_a_list_of_arguments_is_one_read_for_each_and_a_failed_one_answers_its_error(self) -> None:
        def read(request: Any) -> Any:
            place = request["arguments"]["at"]
            if place == "gone":
                raise ValueError("nothing there")
            return {"at": place}

        async def later(request: Any) -> Any:
            return read(request)

        both = {"tool": "t.read", "arguments": [{"at": "a"}, {"at": "gone"}]}
        seen = [{"at": "a"}, {"error": "nothing there"}]
        self.assertEqual(Reading(both, read).now(), seen)
        self.assertEqual(asyncio.run(Reading(both, later).now()), seen)
        none = {"tool": "t.read", "arguments": [{"at": "gone"}, {"at": "gone"}]}
        self.assertRaises(ValueError, Reading(none, read).now)

    def test_what_is_too_deep_to_be_told_is_not_read_before_a_call(self) -> None:
        asked = {"decision": "allow", "step": 0, "before": {"tool": "t.read", "arguments": {}}}
        service, client = self.serve(lambda m, p, b, h: (200, asked) if "intents" in p else ordinary(m, p, b, h))
        with self.assertRaisesRegex(ReadFailed, "nesting is deeper than 63 levels"):
            client.run(permissions=[]).call("t", {}, "r", lambda: self.fail("it ran"), read=lambda _: nested(64))
        self.assertEqual(service.seen[-1]["body"]["status"], "failed")

    def test_an_outcome_that_cannot_be_recorded(self) -> None:
        down: Answer = (503, {"error": "ledger unavailable"})
        service, client = self.serve(lambda m, p, b, h: down if "outcome" in p else ordinary(m, p, b, h))
        with self.assertRaises(OutcomeNotRecorded) as caught:
            client.run(permissions=[]).call("t", {}, "r", lambda: {"id": 1})
        self.assertEqual((caught.exception.step, caught.exception.result), (0, {"id": 1}))
        self.assertEqual(caught.exception.report, {"status": "succeeded", "result": {"id": 1}})
        reports = [seen for seen in service.seen if "outcome" in seen["path"]]
        self.assertEqual(len(reports), 4)
        self.assertEqual(len({seen["headers"]["idempotency-key"] for seen in reports}), 1)


class Repeats(ClientCase):
    def test_a_lost_answer_is_asked_for_again_with_the_same_key(self) -> None:
        lost = [True, True]

        def answer(m: str, p: str, b: Any, h: Any) -> Optional[Answer]:
            return None if p.endswith("/intents") and lost and lost.pop() else ordinary(m, p, b, h)

        service, client = self.serve(answer)
        self.assertTrue(client.run(permissions=[]).intent("t", {}, "r").may_run)
        intents = [seen for seen in service.seen if seen["path"].endswith("/intents")]
        self.assertEqual(len(intents), 3)
        self.assertEqual(len({seen["headers"]["idempotency-key"] for seen in intents}), 1)
        self.assertEqual(len(self.slept), 2)

    def test_a_busy_service_is_asked_again_when_it_said(self) -> None:
        busy = [True, True]

        def answer(m: str, p: str, b: Any, h: Any) -> Optional[Answer]:
            if p.endswith("/outcome") and busy and busy.pop():
                return 429, {"error": "over the quota"}
            return ordinary(m, p, b, h)

        _, client = self.serve(answer)
        self.assertEqual(client.run(permissions=[]).call("t", {}, "r", lambda: 1), 1)
        self.assertEqual([int(pause) for pause in self.slept], [7, 7])

    def test_a_run_whose_opening_was_not_answered(self) -> None:
        for exists in (True, False):
            posts: List[str] = []

            def answer(m: str, p: str, b: Any, h: Any, exists=exists, posts=posts) -> Optional[Answer]:
                if m == "POST":
                    posts.append(b["run_id"])
                    return None if len(posts) == 1 else ordinary(m, p, b, h)
                found = {"run_id": posts[0], "mode": "enforce", "scope": {"seal": "s"}}
                return (200, found) if exists else (404, {"error": "unknown run"})

            _, client = self.serve(answer)
            run = client.run(permissions=[])
            self.assertEqual(run.run_id, posts[0])
            self.assertEqual(len(posts), 1 if exists else 2)

    def test_refusals_are_not_repeated(self) -> None:
        for status in (400, 401, 403, 404, 409, 413, 500):
            service, client = self.serve(lambda *_, status=status: (status, {"error": "because"}))
            with self.assertRaises(ServiceError) as caught:
                client.run(permissions=[])
            self.assertEqual((caught.exception.status, caught.exception.message), (status, "because"))
            self.assertEqual(len(service.seen), 1)

    def test_answers_that_make_no_sense(self) -> None:
        for status, data in ((200, b"<html>"), (500, b"\xff"), (502, b"[]"), (307, b"")):
            _, client = self.serve(lambda *_, status=status, data=data: (status, data), attempts=1)
            with self.assertRaises(ServiceError) as caught:
                client.runs()
            self.assertEqual(caught.exception.status, status)

    def test_nobody_there(self) -> None:
        client = Client("http://127.0.0.1:9", "k", attempts=2, sleep=lambda _: None)
        with self.assertRaises(ServiceError) as caught:
            client.runs()
        self.assertEqual(caught.exception.status, 0)

    def test_bad_settings(self) -> None:
        for url in ("ftp://x", "file:///etc/passwd", "http://", "x"):
            with self.assertRaises(ValueError):
                Client(url, "k")
        for key in ("", "a\r\nb: c", "a b", "\u00fc"):
            with self.assertRaises(ValueError):
                Client("http://x", key)


class Waiting(ClientCase):
    def script(self, statuses: List[Answer], decisions: List[Any]) -> Tuple[Service, Any]:
        def answer(m: str, p: str, b: Any, h: Any) -> Optional[Answer]:
            if p.startswith("/v1/approvals/"):
                return statuses.pop(0)
            return (200, decisions.pop(0)) if p.endswith("/intents") else ordinary(m, p, b, h)

        service, client = self.serve(answer)
        return service, client.run(permissions=[])

    def test_approved_while_waiting(self) -> None:
        blocked = {"decision": "block", "reasons": [PENDING]}
        statuses: List[Answer] = [(200, {"status": "pending"}), (200, {"status": "approved"})]
        service, run = self.script(statuses, [blocked, {"decision": "allow", "step": 3}])
        self.assertEqual(run.call("t", {}, "r", lambda: 1, wait_for_approval=60), 1)
        asked = [seen["path"] for seen in service.seen if "approvals" in seen["path"]]
        self.assertTrue(asked[0].startswith(f"/v1/approvals/{APPROVAL}?wait="))
        keys = [seen["headers"]["idempotency-key"] for seen in service.seen if seen["path"].endswith("/intents")]
        self.assertEqual(len(set(keys)), 2)

    def test_denied_while_waiting(self) -> None:
        endings = (
            ({"status": "denied"}, "was denied"),
            ({"status": "denied", "decided_by": "ann", "note": "too much"}, "was denied by ann: too much"),
            ({"status": "expired", "decided_by": None, "note": "withdrawn"}, "was withdrawn"),
            ({"status": "expired", "decided_by": None, "note": None}, "has expired"),
        )
        for approval, said in endings:
            _, run = self.script([(200, approval)], [{"decision": "block", "reasons": ["a rule", PENDING]}])
            with self.assertRaises(Blocked) as caught:
                run.call("t", {}, "r", lambda: self.fail("it ran"), wait_for_approval=60)
            self.assertEqual(caught.exception.reasons, ["a rule", f"approval request {APPROVAL} {said}"])
            self.assertFalse(caught.exception.waits)
            self.assertNotIn("waits for a person", blocked_text(caught.exception))
            self.assertIsNone(caught.exception.offer)

    def test_denied_with_an_offer(self) -> None:
        offer = {"approval_id": APPROVAL.replace("0001", "0002"), "args": {"amount": 40}}
        denied = {"status": "denied", "decided_by": "ann", "note": None, "offer": offer}
        _, run = self.script([(200, denied)], [{"decision": "block", "reasons": [PENDING]}])
        with self.assertRaises(Blocked) as caught:
            run.call("t", {"amount": 400}, "r", lambda: self.fail("it ran"), wait_for_approval=60)
        self.assertEqual(caught.exception.offer, offer)
        self.assertIn('Approved in its place, once: {"amount": 40}', blocked_text(caught.exception))

    def test_an_offer_is_told_when_the_denied_call_is_asked_for_again(self) -> None:
        offer = {"approval_id": APPROVAL.replace("0001", "0002"), "args": {"amount": 40}}
        for approval, told in (({"offer": offer}, offer), ({"offer": {"approval_id": "apr_1"}}, None)):
            _, run = self.script([(200, {"status": "pending", **approval})], [{"decision": "block", "reasons": [PENDING]}])
            with self.assertRaises(Blocked) as caught:
                run.call("t", {"amount": 400}, "r", lambda: self.fail("it ran"))
            self.assertEqual((caught.exception.offer, caught.exception.waits), (told, True))

    def test_a_key_that_may_not_read_approvals_asks_again_more_and_more_slowly(self) -> None:
        blocked = {"decision": "block", "reasons": [PENDING]}
        forbidden: Answer = (403, {"error": "auditor role required"})
        _, run = self.script([forbidden] * 3, [blocked, blocked, blocked, {"decision": "allow", "step": 0}])
        self.assertEqual(run.call("t", {}, "r", lambda: 1, wait_for_approval=60), 1)
        self.assertEqual(self.slept, sorted(self.slept))
        self.assertEqual(len(self.slept), 3)

    def test_another_request_id_means_the_first_was_refused(self) -> None:
        other = {"decision": "block", "reasons": [PENDING.replace("0001", "0002")]}
        _, run = self.script([(403, {"error": "no"})] * 2, [{"decision": "block", "reasons": [PENDING]}, other])
        with self.assertRaises(Blocked):
            run.call("t", {}, "r", lambda: self.fail("it ran"), wait_for_approval=60)

    def test_no_waiting_unless_asked(self) -> None:
        service, run = self.script([(200, {"status": "pending"})], [{"decision": "block", "reasons": [PENDING]}])
        with self.assertRaises(Blocked) as caught:
            run.call("t", {}, "r", lambda: self.fail("it ran"))
        self.assertIn(f"Request {APPROVAL} waits for a person", blocked_text(caught.exception))
        self.assertEqual([seen["path"] for seen in service.seen][2:], [f"/v1/approvals/{APPROVAL}"])


class RunIds(unittest.TestCase):
    def test_they_are_version_7_and_sort_by_time(self) -> None:
        made = [new_run_id() for _ in range(50)]
        self.assertEqual(len(set(made)), 50)
        for run_id in made:
            self.assertRegex(run_id, r"^run_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")


if __name__ == "__main__":
    unittest.main()
