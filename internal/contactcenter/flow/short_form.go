package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/op"
)

// IVR is the short form of a flow with one menu.
type IVR struct {
	Greeting  string            `json:"greeting" doc:"A text that is spoken, or the id of a sound"`
	Options   map[string]string `json:"options" doc:"Where each digit leads: a number, ext:, user:, queue:, flow:, voicemail: or sip: destination, or hangup"`
	TimeoutTo string            `json:"timeout_to" doc:"Where callers go who press nothing, or who call while closed"`
	Hours     *org.Hours        `json:"hours,omitempty"`
}

// Hunt is the short form of a flow that rings a group.
type Hunt struct {
	Members     []HuntMember `json:"members" maxItems:"50"`
	Strategy    string       `json:"strategy,omitempty" doc:"simultaneous, sequential, round_robin or longest_idle"`
	RingTimeout int          `json:"ring_timeout_seconds,omitempty" doc:"20 unless given"`
	NoAnswerTo  string       `json:"no_answer_to" doc:"A destination, or hangup"`
}

// Assistant is the short form of a flow with an AI voice agent.
type Assistant struct {
	Instructions string   `json:"instructions"`
	Voice        string   `json:"voice,omitempty"`
	Greeting     string   `json:"greeting,omitempty"`
	Tools        []string `json:"tools,omitempty" doc:"lookup_contact, caller_memory, transfer, send_sms, take_message, schedule_callback, http"`
	HandoffTo    string   `json:"handoff_to,omitempty" doc:"A destination for callers the assistant cannot help"`
}

// builder assembles a graph.
type builder struct {
	g     Graph
	nodes map[string]string // node ids by destination
}

func newBuilder() *builder { return &builder{nodes: map[string]string{}} }

func (b *builder) add(id, kind string, config map[string]any, next map[string]string) string {
	b.g.Nodes = append(b.g.Nodes, Node{ID: id, Type: kind, Config: config, Next: next})
	return id
}

// hangup returns the id of the node that ends the call.
func (b *builder) hangup() string {
	if id := b.nodes["hangup"]; id != "" {
		return id
	}
	b.nodes["hangup"] = "hangup"
	return b.add("hangup", "hangup", map[string]any{}, nil)
}

// nodeFor returns the id of the node that routes to a destination, and adds the node if it is missing.
func (b *builder) nodeFor(destination string) string {
	if destination == "hangup" {
		return b.hangup()
	}
	if id := b.nodes[destination]; id != "" {
		return id
	}
	id := fmt.Sprintf("to_%d", len(b.nodes)+1)
	b.nodes[destination] = id
	kind, name, _ := strings.Cut(destination, ":")
	switch kind {
	case "queue":
		return b.add(id, "queue", map[string]any{"queue_id": name}, map[string]string{"timeout": b.hangup(), "overflow": b.hangup()})
	case "voicemail":
		return b.add(id, "voicemail", map[string]any{"mailbox": name}, nil)
	}
	return b.add(id, "transfer", map[string]any{"to": destination}, map[string]string{"failed": b.hangup()})
}

// expand returns the graph of a menu.
func (x IVR) expand() Graph {
	b := newBuilder()
	otherwise := b.nodeFor(x.TimeoutTo)
	next, labels := map[string]string{"timeout": otherwise, "invalid": otherwise}, map[string]any{}
	for _, digit := range slices.Sorted(maps.Keys(x.Options)) {
		next[digit], labels[digit] = b.nodeFor(x.Options[digit]), x.Options[digit]
	}
	b.g.Entry = b.add("menu", "menu", map[string]any{"prompt": promptConfig(x.Greeting), "digits": labels}, next)
	if x.Hours != nil {
		b.g.Entry = b.add("hours", "hours", map[string]any{"hours": x.Hours}, map[string]string{"open": "menu", "closed": otherwise})
	}
	return b.g
}

func promptConfig(text string) map[string]any {
	if p := promptOf(text); p.AudioID != "" {
		return map[string]any{"audio_id": p.AudioID}
	}
	return map[string]any{"text": text}
}

// expand returns the graph of a hunt group.
func (x Hunt) expand() Graph {
	b := newBuilder()
	config := map[string]any{"members": x.Members}
	if x.Strategy != "" {
		config["strategy"] = x.Strategy
	}
	if x.RingTimeout != 0 {
		config["ring_timeout_seconds"] = x.RingTimeout
	}
	b.g.Entry = b.add("group", "hunt_group", config, map[string]string{"no_answer": b.nodeFor(x.NoAnswerTo)})
	return b.g
}

// expand returns the graph of a voice agent.
func (x Assistant) expand() Graph {
	b := newBuilder()
	config := map[string]any{"instructions": x.Instructions}
	for name, v := range map[string]string{"voice": x.Voice, "greeting": x.Greeting, "handoff": x.HandoffTo} {
		if v != "" {
			config[name] = v
		}
	}
	if len(x.Tools) > 0 {
		config["tools"] = x.Tools
	}
	failed := "hangup"
	if x.HandoffTo != "" {
		failed = x.HandoffTo
	}
	b.g.Entry = b.add("assistant", "ai_agent", config, map[string]string{"failed": b.nodeFor(failed)})
	return b.g
}

// graph returns the graph and the kind of a request, in whichever form it was given.
func (f Fresh) graph() (g Graph, kind string, wrong []op.Violation) {
	forms := 0
	if len(f.Nodes) > 0 || f.Entry != "" {
		g, kind, forms = Graph{Entry: f.Entry, Nodes: f.Nodes}, "graph", forms+1
	}
	if f.IVR != nil {
		g, kind, forms = f.IVR.expand(), "ivr", forms+1
	}
	if f.HuntGroup != nil {
		g, kind, forms = f.HuntGroup.expand(), "hunt_group", forms+1
	}
	if f.AIAgent != nil {
		g, kind, forms = f.AIAgent.expand(), "ai_agent", forms+1
	}
	if forms != 1 {
		wrong = append(wrong, op.Field("nodes", "ambiguous", "give one of nodes with entry, ivr, hunt_group and ai_agent"))
	}
	g.Timezone, g.Language = f.Timezone, f.Language
	return g, kind, wrong
}
