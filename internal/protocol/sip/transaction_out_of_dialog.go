package sip

import (
	"context"
	"math/rand/v2"
	"strconv"
)

// Sending requests outside dialogs.

// outOfDialogRequest is a request sent outside dialogs: REGISTER, OPTIONS, MESSAGE or NOTIFY.
type outOfDialogRequest struct {
	method, uri, callID string
	from, to            string // header values, From with its tag
	seq                 uint32
	flow                flow
	extraFields         string // header lines, each with its CRLF
	contentType         string // of the body
	body                []byte
}

// outOfDialogResponse holds the parts of a response that leave the shard.
type outOfDialogResponse struct {
	status   int
	reason   string
	fromPeer bool // false: made here for a timeout or a send failure
	fields   []field
}

func (r *outOfDialogResponse) message() *message { return &message{status: r.status, fields: r.fields} }

// sendOutOfDialog sends a request outside dialogs and waits for its final response. Without a response the status is
// 408, or 503 if the request could not be sent.
func (s *Server) sendOutOfDialog(ctx context.Context, e *outOfDialogRequest) (*outOfDialogResponse, error) {
	branch := rand.Uint64()
	b := s.writeOutOfDialog(e, branch)
	result := make(chan *outOfDialogResponse, 1)
	ok := s.shardOf(e.callID).enqueue(func(sh *shard) {
		sh.startClientTx(clientKey{branch, nonInviteTx}, e.flow, b, func(m *message, status int) {
			if status < 200 {
				return
			}
			res := &outOfDialogResponse{status: status, reason: reasonPhrase(status)}
			if m != nil {
				res.fromPeer, res.reason = true, m.reason
				res.fields = append(res.fields, m.fields...)
			}
			result <- res
		})
	})
	if !ok {
		return nil, ErrClosed
	}
	select {
	case res := <-result:
		return res, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.done:
		return nil, ErrClosed
	}
}

func (s *Server) writeOutOfDialog(e *outOfDialogRequest, branch uint64) []byte {
	b := append(append(append([]byte(e.method), ' '), e.uri...), " SIP/2.0\r\n"...)
	b = s.appendVia(b, e.flow, branch)
	b = appendField(b, "Max-Forwards", "70")
	b = appendField(b, "From", e.from)
	b = appendField(b, "To", e.to)
	b = appendField(b, "Call-ID", e.callID)
	b = appendField(b, "CSeq", strconv.FormatUint(uint64(e.seq), 10)+" "+e.method)
	b = append(b, e.extraFields...)
	return appendBody(b, e.contentType, e.body)
}
