package mcpbridge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// listToolsRequest asks for the tools in the revision of the protocol without sessions.
const listToolsRequest = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"soniq mcp","version":"1"}}}}`

// Tools returns the names of the tools that an assistant sees.
func (b *Bridge) Tools(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m := message{line: []byte(listToolsRequest)}
	if err := json.Unmarshal(m.line, &m.rpc); err != nil {
		return nil, err
	}
	r, err := b.request(ctx, http.MethodPost, m.line, b.headers(m))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
	for lines.Scan() {
		var got struct {
			Detail string
			Error  struct{ Message string }
			Result struct{ Tools []struct{ Name string } }
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data:")), &got) != nil {
			continue
		}
		if why := got.Detail + got.Error.Message; why != "" {
			return nil, errors.New(why)
		}
		var names []string
		for _, t := range got.Result.Tools {
			if !b.ReadOnly || readsOnly(t.Name) {
				names = append(names, t.Name)
			}
		}
		return names, nil
	}
	return nil, errors.New("the server did not say which tools there are: " + r.Status)
}
