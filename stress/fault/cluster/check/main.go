// Reads the histories of a cluster run, one operation per line, and has porcupine check that each object behaved as if
// its operations had happened one at a time. The models say what one object must do; the search is porcupine's.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation is what one client asked of one object. Out is empty if no answer came: it happened at any time or never.
type Operation struct {
	Model  string `json:"model"`
	Object string `json:"object"`
	Client int    `json:"client"`
	Op     string `json:"op"`
	Arg    int    `json:"arg"`
	Out    string `json:"out"`
	Call   int64  `json:"call"`
	Return int64  `json:"return"`
}

type Verdict struct {
	Operations int            `json:"operations"`
	Objects    int            `json:"objects"`
	PerModel   map[string]int `json:"per_model"`
	Illegal    []string       `json:"illegal"`
	Undecided  []string       `json:"undecided"`
}

// A step gets a state and one operation, and returns whether the object may do that, and its next state.
type step func(state [3]int, in Operation, out string) (bool, [3]int)

const (
	pending = iota
	approved
	ended
)

func decide(state [3]int, to int, out string) (bool, [3]int) {
	next := state
	next[0] = to
	switch {
	case state[0] == pending:
		return out != "refused", next
	default:
		return out != "ok", state
	}
}

// allow: the call must be allowed exactly if it can be.
func allow(can bool, out string, before, after [3]int) (bool, [3]int) {
	if can {
		return out != "blocked", after
	}
	return out != "allowed", before
}

var models = map[string]step{
	// An approval is decided once and used once. State: its status.
	"approval": func(state [3]int, in Operation, out string) (bool, [3]int) {
		switch in.Op {
		case "approve":
			return decide(state, approved, out)
		case "deny", "withdraw":
			return decide(state, ended, out)
		default:
			return allow(state[0] == approved, out, state, [3]int{ended})
		}
	},
	// A grant covers Arg calls until it is revoked. State: uses, revoked.
	"grant": func(state [3]int, in Operation, out string) (bool, [3]int) {
		if in.Op == "revoke" {
			return true, [3]int{state[0], 1}
		}
		return allow(state[1] == 0 && state[0] < in.Arg, out, state, [3]int{state[0] + 1, state[1]})
	},
	// A limit allows Arg calls. State: allowed calls.
	"limit": func(state [3]int, in Operation, out string) (bool, [3]int) {
		return allow(state[0] < in.Arg, out, state, [3]int{state[0] + 1})
	},
	// A call is blocked exactly while a halt is active. State: active halts, a bit each.
	"halt": func(state [3]int, in Operation, out string) (bool, [3]int) {
		switch in.Op {
		case "halt":
			return true, [3]int{state[0] | 1<<in.Arg}
		case "lift":
			return true, [3]int{state[0] &^ (1 << in.Arg)}
		default:
			return allow(state[0] == 0, out, state, state)
		}
	},
	// A plan is decided once; its calls run once each, in order, each after the outcome of the one before.
	// State: status, next call, a call without outcome.
	"plan": func(state [3]int, in Operation, out string) (bool, [3]int) {
		switch in.Op {
		case "approve":
			return decide(state, approved, out)
		case "deny":
			return decide(state, ended, out)
		case "outcome":
			return true, [3]int{state[0], state[1], 0}
		default:
			can := state[0] == approved && state[1] == in.Arg && state[2] == 0
			return allow(can, out, state, [3]int{state[0], state[1] + 1, 1})
		}
	},
	// The ledger only grows: an operation that began after another was answered has a later record. State: last record.
	"ledger": func(state [3]int, in Operation, _ string) (bool, [3]int) {
		return in.Arg > state[0], [3]int{in.Arg}
	},
}

func model(run step) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return [3]int{} },
		Step: func(state, in, out interface{}) (bool, interface{}) {
			return run(state.([3]int), in.(Operation), out.(string))
		},
	}
}

func check(histories map[string][]Operation) Verdict {
	verdict := Verdict{PerModel: map[string]int{}, Illegal: []string{}, Undecided: []string{}}
	for object, operations := range histories {
		sort.SliceStable(operations, func(a, b int) bool { return operations[a].Call < operations[b].Call })
		history := []porcupine.Operation{}
		for _, each := range operations {
			end := each.Return
			if each.Out == "" {
				end = math.MaxInt64
			}
			history = append(history, porcupine.Operation{
				ClientId: each.Client, Input: each, Call: each.Call, Output: each.Out, Return: end,
			})
		}
		verdict.Objects++
		verdict.Operations += len(history)
		verdict.PerModel[operations[0].Model] += len(history)
		run, known := models[operations[0].Model]
		if !known {
			panic("no model " + operations[0].Model)
		}
		switch porcupine.CheckOperationsTimeout(model(run), history, 2*time.Minute) {
		case porcupine.Illegal:
			verdict.Illegal = append(verdict.Illegal, object)
		case porcupine.Unknown:
			verdict.Undecided = append(verdict.Undecided, object)
		}
	}
	sort.Strings(verdict.Illegal)
	sort.Strings(verdict.Undecided)
	return verdict
}

func main() {
	histories := map[string][]Operation{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var each Operation
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		object := each.Model + " " + each.Object
		histories[object] = append(histories[object], each)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	_ = json.NewEncoder(os.Stdout).Encode(check(histories))
}
