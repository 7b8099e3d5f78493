package sip

import (
	"context"
	"math/rand/v2"
	"strconv"

	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Requests outside dialogs: their destination, sending, response.

// outOfDialogRequest is a request sent outside dialogs: REGISTER, OPTIONS, MESSAGE or NOTIFY.
type outOfDialogRequest struct {
	method, uri, callID string
	from, to            string // header values, From with its tag
	seq                 uint32
	flow                transport.Flow
	extraFields         string // header lines, each with its CRLF
	contentType         string // of the body
	body                []byte
}

// outOfDialogResponse holds the parts of a response that leave the shard.
type outOfDialogResponse struct {
	status   int
	reason   string
	fromPeer bool // false: made here for a timeout or a send failure
	fields   []sipmsg.Field
}

func (r *outOfDialogResponse) message() *sipmsg.Message {
	return &sipmsg.Message{Status: r.status, Fields: r.fields}
}

// sendOutOfDialog sends a request outside dialogs and waits for its final response. Without a response the status is
// 408, or 503 if the request could not be sent.
func (s *Server) sendOutOfDialog(ctx context.Context, e *outOfDialogRequest) (*outOfDialogResponse, error) {
	branch := rand.Uint64()
	b := s.writeOutOfDialog(e, branch)
	result := make(chan *outOfDialogResponse, 1)
	ok := s.shardOf(e.callID).enqueue(func(sh *shard) {
		sh.startClientTx(clientKey{branch, nonInviteTx}, e.flow, b, func(m *received, status int) {
			if status < 200 {
				return
			}
			res := &outOfDialogResponse{status: status, reason: sipmsg.ReasonPhrase(status)}
			if m != nil {
				res.fromPeer, res.reason = true, m.Reason
				res.fields = append(res.fields, m.Fields...)
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
	b = sipmsg.AppendField(b, "Max-Forwards", "70")
	b = sipmsg.AppendField(b, "From", e.from)
	b = sipmsg.AppendField(b, "To", e.to)
	b = sipmsg.AppendField(b, "Call-ID", e.callID)
	b = sipmsg.AppendField(b, "CSeq", strconv.FormatUint(uint64(e.seq), 10)+" "+e.method)
	b = append(b, e.extraFields...)
	return sipmsg.AppendBody(b, e.contentType, e.body)
}

// flowToHop returns the flow to a server that the Locator found.
func (s *Server) flowToHop(h resolve.Hop) transport.Flow {
	return s.layer.FlowTo(h.Transport, h.Addr, h.Name)
}

// resolveFlow returns the flow to the best destination of a next hop.
func (s *Server) resolveFlow(ctx context.Context, t resolve.Target, uri sipmsg.URI) (transport.Flow, error) {
	all, err := s.locator.Hops(ctx, t, uri)
	if err != nil {
		return transport.Flow{}, err
	}
	return s.flowToHop(all[0]), nil
}
