package mcp

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// prompt is a template of a recurring task for an assistant that has the tools.
type prompt struct {
	name, title, about string
	args               []*sdk.PromptArgument
	text               string // {name} is replaced by an argument
}

var prompts = []prompt{
	{name: "missed_call_follow_up", title: "Follow up missed calls",
		about: "Go through the calls nobody answered and propose what to do about each",
		args:  []*sdk.PromptArgument{{Name: "since", Title: "Since", Description: "A date or time; today unless given"}},
		text: "List the missed calls nobody has handled since {since} with get_missed_calls. For each caller look up get_caller_memory. " +
			"Then give me a table: caller, when, what they probably want, how urgent it is, what you propose (call back, message, nothing). " +
			"Do not call or write to anybody before I say so."},
	{name: "shift_handover", title: "Hand over a shift", about: "What the next shift has to know",
		args: []*sdk.PromptArgument{{Name: "since", Title: "Since", Description: "When the shift began; today unless given"}},
		text: "Write the hand-over of the shift that began {since}: the queues as they are now (get_queue_status), calls in progress (get_live_calls), " +
			"missed calls not handled (get_missed_calls), and from get_call_history what stays open, with names and numbers. Half a page at most."},
	{name: "caller_overview", title: "Overview of a caller", about: "Everything worth knowing before talking to somebody",
		args: []*sdk.PromptArgument{{Name: "phone", Title: "Number", Description: "In E.164", Required: true}},
		text: "I am about to talk to {phone}. Use get_screen_pop and get_caller_memory, and tell me in five lines: who it is, what was talked about last, " +
			"what is open, their mood over time, and what I should not forget."},
}

func (s *Server) addPrompts() {
	for _, p := range prompts {
		s.server.AddPrompt(&sdk.Prompt{Name: p.name, Title: p.title, Description: p.about, Arguments: p.args},
			func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
				return p.fill(req.Params.Arguments), nil
			})
	}
}

func (p prompt) fill(given map[string]string) *sdk.GetPromptResult {
	text := p.text
	for _, a := range p.args {
		value := strings.TrimSpace(given[a.Name])
		if value == "" {
			value = "today"
		}
		if len(value) > 60 {
			value = strings.ToValidUTF8(value[:60], "")
		}
		text = strings.ReplaceAll(text, "{"+a.Name+"}", stripInvisible(value))
	}
	return &sdk.GetPromptResult{Description: p.about, Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}
}

// maxCompletions bounds the values of a completion.
const maxCompletions = 50

// complete proposes values of arguments: calls in progress, queues, numbers of recent calls.
func (s *Server) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	v, _ := ctx.Value(senderKey{}).(*sender)
	none := &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}
	if v == nil || req.Params.Ref == nil {
		return none, nil
	}
	ctx = v.operationContext(ctx, "completion", clientName(req.ClientInfo()))
	for _, from := range []struct{ when, operation, member string }{
		{"call://", "calls.live", "id"}, {"queue://", "queues.stats_all", "queue_id"}, {"contact://", "cdr.list", "from_number"},
		{"phone", "cdr.list", "from_number"},
	} {
		if strings.HasPrefix(req.Params.Ref.URI, from.when) || req.Params.Ref.URI == "" && req.Params.Argument.Name == from.when {
			return s.proposals(ctx, from.operation, from.member, req.Params.Argument.Value), nil
		}
	}
	return none, nil
}

// proposals returns the values of a member in an operation's list that begin with the typed text.
func (s *Server) proposals(ctx context.Context, operation, member, typed string) *sdk.CompleteResult {
	q := url.Values{}
	if operation == "cdr.list" {
		q.Set("limit", fmt.Sprint(maxCompletions))
	}
	out := &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}
	answer, f := s.callOperation(ctx, operation, operationRequest{query: q})
	if f != nil {
		return out
	}
	rows, _ := answer["data"].([]any)
	seen := map[string]bool{}
	for _, row := range rows {
		one, _ := row.(schema)
		value := text(one[member])
		if value != "" && !seen[value] && strings.HasPrefix(value, typed) && len(seen) < maxCompletions {
			seen[value] = true
			out.Completion.Values = append(out.Completion.Values, value)
		}
	}
	out.Completion.Total = len(out.Completion.Values)
	return out
}
