package mcp_test

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/e2e/rig"
)

// TestNumberTools_SearchAndOrder confirms the order of a number, and checks the progress notifications to a client
// that requests them.
func TestNumberTools_SearchAndOrder(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		org := s.Org("live")
		var trunk struct{ ID string }
		org.Want(201, "POST", "/trunks", map[string]any{"name": "Carrier", "host": "127.0.0.1", "port": 5099}, &trunk)
		s.Command("numbers", "add-block", "--org", org.Org, "--trunk", trunk.ID, "--from", "+12025550170", "--to", "+12025550179")
		for era := range eras {
			var asked []string
			told := make(chan string, 1)
			a := connect(t, org, era, &sdk.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked = append(asked, r.Params.Message)
					return &sdk.ElicitResult{Action: "accept"}, nil
				},
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					select {
					case told <- r.Params.Message:
					default:
					}
				},
			})
			search := &sdk.CallToolParams{Name: "search_numbers", Arguments: map[string]any{"country": "US", "contains": "555017"}}
			search.SetProgressToken("looking")
			var found *sdk.CallToolResult
			rig.Until(t, era+": progress", patience, func() (heard bool) { // the client drops notifications that arrive with the result
				var err error
				if found, err = a.session.CallTool(a.ctx, search); err != nil || found.IsError {
					t.Fatalf("%s: %v %+v", era, err, found)
				}
				select {
				case text := <-told:
					return text != ""
				default:
					return false
				}
			})
			list, _ := found.StructuredContent.(map[string]any)
			number := text(list, "numbers", "0", "number")
			got := a.want("allocate_number", map[string]any{"number": number, "label": era})
			if text(got, "number", "number") != number || text(got, "number", "status") != "active" || len(asked) != 1 {
				t.Errorf("%s: %v, asked %q", era, got, asked)
			}
			if again := a.refused("allocate_number", map[string]any{"number": number}); again == "" || len(asked) != 2 {
				t.Errorf("%s: ordered twice: %s", era, again)
			}
		}
	})
}
