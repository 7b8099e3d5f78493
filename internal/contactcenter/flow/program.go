package flow

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Graph holds the nodes of a flow and its entry node, in the stored form.
type Graph struct {
	Entry    string `json:"entry"`
	Nodes    []Node `json:"nodes"`
	Timezone string `json:"timezone,omitempty"` // "": the organisation's
	Language string `json:"language,omitempty"`
}

// Program is a flow in executable form. It is immutable, and safe for concurrent use.
type Program struct {
	FlowID   string
	Name     string
	Version  int // 0: a draft
	Entry    string
	Steps    map[string]*Step
	Timezone string
	Language string
}

// First returns the first step.
func (p *Program) First() *Step { return p.Steps[p.Entry] }

// Next returns the step that follows an outcome of a step; nil if the flow ends there.
func (p *Program) Next(s *Step, outcome string) *Step {
	for range 3 {
		if id, ok := s.Next[outcome]; ok {
			return p.Steps[id]
		}
		i := slices.IndexFunc(s.Config.Outcomes(), func(o Outcome) bool { return o.Name == outcome })
		if i < 0 || s.Config.Outcomes()[i].Fallback == "" {
			return nil
		}
		outcome = s.Config.Outcomes()[i].Fallback
	}
	return nil
}

// MaxSteps limits the flow steps of one call, over all flows.
const MaxSteps = 1000

const maxNodes = 500

var nodeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}$`)

// Findings holds the faults of a flow. Errors prevent its publication, warnings do not.
type Findings struct {
	Errors   []Fault
	Warnings []Fault
}

// compile compiles a graph and lists all its faults. The program is complete only if there are no errors.
func compile(ctx context.Context, org string, refs References, g Graph) (*Program, Findings, error) {
	c := &checker{ctx: ctx, org: org, refs: refs, language: g.Language}
	p := &Program{Entry: g.Entry, Steps: map[string]*Step{}, Timezone: g.Timezone, Language: g.Language}
	if len(g.Nodes) == 0 || len(g.Nodes) > maxNodes {
		c.fault("out_of_range", "a flow has 1 to %d nodes", maxNodes)
		return p, Findings{Errors: c.faults}, nil
	}
	for _, n := range g.Nodes {
		c.addStep(p, n)
	}
	c.node = ""
	if _, ok := p.Steps[g.Entry]; !ok {
		c.fault("entry_not_found", "entry must name a node: %q", g.Entry)
	}
	for _, n := range g.Nodes {
		c.node = n.ID
		c.checkNext(p, n)
	}
	c.checkLoops(p)
	f := Findings{Errors: c.faults}
	c.faults = nil
	c.checkUnreachable(p, g)
	f.Warnings = append(c.faults, c.warnings...)
	return p, f, c.err
}

// addStep adds the step of a node to the program.
func (c *checker) addStep(p *Program, n Node) {
	c.node = n.ID
	if !nodeForm.MatchString(n.ID) {
		c.fault("invalid_id", "%q: an id has 1 to 60 letters, digits, _ or -", n.ID)
	}
	if p.Steps[n.ID] != nil {
		c.fault("duplicate_id", "two nodes have this id")
		return
	}
	config, err := n.parse()
	switch {
	case err != nil:
		c.fault("invalid_config", "%v", err)
	case config == nil:
		c.fault("unknown_type", "there is no type %q; known are %s", n.Type, strings.Join(types, ", "))
	default:
		config.check(c)
	}
	p.Steps[n.ID] = &Step{ID: n.ID, Config: config, Next: n.Next}
}

// checkNext checks the nodes that follow a node.
func (c *checker) checkNext(p *Program, n Node) {
	s := p.Steps[n.ID]
	for outcome, id := range n.Next {
		if _, ok := p.Steps[id]; !ok {
			c.fault("next_not_found", "after %s: there is no node %q", outcome, id)
		}
	}
	if s == nil || s.Config == nil {
		return
	}
	known := s.Config.Outcomes()
	for outcome := range n.Next {
		if !slices.ContainsFunc(known, func(o Outcome) bool { return o.Name == outcome }) {
			c.fault("unknown_outcome", "a %s has no outcome %q; it has %s", n.Type, outcome, outcomeNames(known))
		}
	}
	for _, o := range known {
		if _, ok := n.Next[o.Name]; o.Required && !ok {
			c.fault("missing_outcome", "nothing follows %s", o.Name)
		}
	}
}

// outcomeNames returns the names of outcomes for a message.
func outcomeNames(all []Outcome) string {
	if len(all) == 0 {
		return "none"
	}
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = o.Name
	}
	return strings.Join(names, ", ")
}

// checkLoops finds loops of nodes that take no time: a caller would run through them endlessly without a pause.
func (c *checker) checkLoops(p *Program) {
	const open, done = 1, 2
	seen, path := map[string]int{}, []string{}
	told := map[string]bool{}
	var visit func(id string)
	visit = func(id string) {
		s := p.Steps[id]
		if s == nil || s.Config == nil || !isInstant(s.Config) || seen[id] == done {
			return
		}
		if seen[id] == open {
			for _, on := range path[slices.Index(path, id):] {
				if !told[on] {
					told[on], c.node = true, on
					c.fault("endless_loop", "this node is in a circle in which nobody waits or presses anything")
				}
			}
			return
		}
		seen[id], path = open, append(path, id)
		for _, next := range nextIDs(s.Next) {
			visit(next)
		}
		seen[id], path = done, path[:len(path)-1]
	}
	for _, id := range stepIDs(p) {
		visit(id)
	}
}

func stepIDs(p *Program) []string {
	all := make([]string, 0, len(p.Steps))
	for id := range p.Steps {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// nextIDs returns the ids of the nodes that follow, without duplicates.
func nextIDs(next map[string]string) []string {
	all := make([]string, 0, len(next))
	for _, id := range next {
		all = append(all, id)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkUnreachable finds nodes without a path from the entry.
func (c *checker) checkUnreachable(p *Program, g Graph) {
	reached := map[string]bool{}
	todo := []string{g.Entry}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		s := p.Steps[id]
		if s == nil || reached[id] {
			continue
		}
		reached[id] = true
		todo = append(todo, nextIDs(s.Next)...)
	}
	for _, n := range g.Nodes {
		if !reached[n.ID] {
			c.node = n.ID
			c.fault("unreachable", "nothing leads to this node")
		}
	}
}

// IsTrue evaluates the condition.
func (x *Condition) IsTrue(s Scope) (bool, error) {
	if x.program == nil {
		return false, fmt.Errorf("the expression was not read")
	}
	return x.program.IsTrue(s)
}

// Values returns the variables to set, with their templates filled in.
func (x *Set) Values(s Scope) map[string]any {
	all := make(map[string]any, len(x.Variables))
	for name, v := range x.Variables {
		if t := x.texts[name]; t != nil {
			v = t.Fill(s)
		}
		all[name] = v
	}
	return all
}
