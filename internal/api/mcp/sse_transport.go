package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/op"
)

// Transport of revision 2024-11-05 (HTTP with SSE): an event stream that is opened by GET, and messages that are
// posted to the address in its first event. A stream belongs to the credential that opened it.

// stream is an open event stream.
type stream struct {
	transport  *sdk.SSEServerTransport
	owner      string
	org        string
	lastSender atomic.Pointer[sender] // sender of the last message
	begun      atomic.Bool            // initialize was posted
	connected  chan struct{}          // closed when connection is set
	connection sdk.Connection
}

type streamKey struct{}

// streams holds the open streams.
type streams struct {
	mu   sync.Mutex // guards the two below
	all  map[string]*stream
	orgs map[string]int
}

// maxStreamsPerOrg bounds the open streams of an organisation.
const maxStreamsPerOrg = 200

func newStreams() *streams { return &streams{all: map[string]*stream{}, orgs: map[string]int{}} }

// open opens a stream and serves it until either side closes it.
func (a *streams) open(w http.ResponseWriter, r *http.Request, server *sdk.Server, v *sender) {
	id := rand.Text()
	st := &stream{owner: v.owner(), org: v.principal.OrgID, connected: make(chan struct{}), transport: &sdk.SSEServerTransport{
		Endpoint: r.URL.Path + "?" + url.Values{"sessionid": {id}}.Encode(), Response: w, MaxRequestBodyBytes: maxBody}}
	st.lastSender.Store(v)
	if !a.add(id, st) {
		op.Write(w, r, op.Unavailable("concurrency_limit", fmt.Sprintf("an organisation may hold %d streams open", maxStreamsPerOrg), "5"))
		return
	}
	defer a.remove(id, st)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	session, err := server.Connect(context.WithValue(r.Context(), streamKey{}, st), st, nil)
	if err != nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = session.Wait()
	}()
	select {
	case <-r.Context().Done():
		_ = session.Close()
		<-ended
	case <-ended:
	}
}

// post passes a message to a stream of the same owner.
func (a *streams) post(w http.ResponseWriter, r *http.Request, id string, v *sender) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		op.Write(w, r, op.Fail("unsupported_media_type", "send application/json"))
		return
	}
	a.mu.Lock()
	st := a.all[id]
	a.mu.Unlock()
	if st == nil || st.owner != v.owner() { // the same answer for a foreign stream, so that its existence is not revealed
		op.Write(w, r, op.NotFound("open stream of yours"))
		return
	}
	st.lastSender.Store(v)
	all, _ := rpcRequests(v.body)
	if faults := faultsOf(all, st.check(all)); len(faults) > 0 {
		st.answer(w, r, faults)
		return
	}
	held := &refusalWriter{ResponseWriter: w}
	st.transport.ServeHTTP(held, r)
	held.finish(all, func(faults []rpcFault) { st.answer(w, r, faults) })
}

// check returns the check of posted requests, and notes that initialize is among them.
func (st *stream) check(all []rpcRequest) func(rpcRequest) *rpcFault {
	if slices.ContainsFunc(all, func(r rpcRequest) bool { return r.isCall() && *r.Method == "initialize" }) {
		st.begun.Store(true)
	}
	if st.begun.Load() {
		return rpcRequest.fault
	}
	return rpcRequest.uninitialized
}

// answer sends errors on the stream, where the client waits for them.
func (st *stream) answer(w http.ResponseWriter, r *http.Request, faults []rpcFault) {
	select {
	case <-st.connected:
	case <-r.Context().Done():
		return
	}
	for _, f := range faults {
		var id any // none if it would come back changed
		if isEchoedID(f.ID) {
			_ = json.Unmarshal(f.ID, &id)
		}
		known, _ := jsonrpc.MakeID(id)
		if err := st.connection.Write(r.Context(), &jsonrpc.Response{ID: known, Error: &f.Error}); err != nil {
			w.WriteHeader(http.StatusGone)
			return
		}
	}
	w.Header().Del("Content-Type")
	w.WriteHeader(http.StatusAccepted)
}

// Connect implements sdk.Transport. It keeps the connection, on which answer writes too.
func (st *stream) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := st.transport.Connect(ctx)
	if err == nil {
		st.connection = c
		close(st.connected)
	}
	return c, err
}

// SupportsProtocolVersion reports whether the transport can serve a revision.
func (st *stream) SupportsProtocolVersion(version string) bool {
	return st.transport.SupportsProtocolVersion(version)
}

func (a *streams) add(id string, st *stream) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orgs[st.org] >= maxStreamsPerOrg {
		return false
	}
	a.orgs[st.org]++
	a.all[id] = st
	return true
}

func (a *streams) remove(id string, st *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, id)
	if a.orgs[st.org]--; a.orgs[st.org] <= 0 {
		delete(a.orgs, st.org)
	}
}
