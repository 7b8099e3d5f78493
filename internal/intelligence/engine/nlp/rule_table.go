package nlp

// rule is a rule with its precision on the labelled calls of testdata/clauses.json: how many of its findings are right.
type rule struct {
	name      string
	precision float64
	findings  int // on which the precision rests
}

// leastPrecision is the precision below which a rule stays silent. A rule without findings stays silent too.
const leastPrecision = 0.9

// rules lists every rule about flags, actions, the mood of the caller, times and the third person. TestRules measures the figures.
var rules = []rule{
	{"flag.escalation_request", 1, 3}, {"flag.churn_risk", 1, 5}, {"flag.recording_disclosure", 1, 3}, {"flag.do_not_contact", 1, 4},
	{"flag.emergency", 1, 5},
	{"todo.request", 1, 5}, {"todo.promise", 0.94, 32}, {"todo.conjoined", 1, 4}, {"todo.go_ahead", 1, 2}, {"todo.order", 1, 1},
	{"todo.needs", 1, 2},
	{"todo.instruction", 1, 3}, {"todo.progressive", 1, 3}, {"todo.done", 1, 7}, {"todo.third_party", 1, 10},
	{"mood.positive", 1, 5}, {"mood.negative", 0.97, 31}, {"mood.mixed", 1, 3}, {"due", 0.97, 36}, {"third_person", 1, 32},
}

// permitted has the rules that are precise enough.
var permitted = func() map[string]bool {
	m := map[string]bool{}
	for _, r := range rules {
		m[r.name] = r.findings > 0 && r.precision >= leastPrecision
	}
	return m
}()

// allowed reports whether a rule is precise enough to speak.
func allowed(name string) bool { return permitted[name] }
