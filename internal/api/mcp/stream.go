package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/op"
)

// This file is the transport of revision 2024-11-05: a stream of events that is opened by GET, and messages posted to the address that
// its first event announces. A stream belongs to the credential that opened it.

// A stream is an open one.
type stream struct {
	transport *sdk.SSEServerTransport
	owner     string
	org       string
	visit     atomic.Pointer[visit] // of the last message
}

type streamKey struct{}

// streams are all open ones.
type streams struct {
	mu   sync.Mutex // guards the two below
	all  map[string]*stream
	orgs map[string]int
}

// perOrganisation bounds the open streams of an organisation.
const perOrganisation = 200

func newStreams() *streams { return &streams{all: map[string]*stream{}, orgs: map[string]int{}} }

// open begins a stream and serves it until one side ends it.
func (a *streams) open(w http.ResponseWriter, r *http.Request, server *sdk.Server, v *visit) {
	id := rand.Text()
	st := &stream{owner: v.owner(), org: v.principal.OrgID, transport: &sdk.SSEServerTransport{
		Endpoint: r.URL.Path + "?" + url.Values{"sessionid": {id}}.Encode(), Response: w, MaxRequestBodyBytes: maxBody}}
	st.visit.Store(v)
	if !a.add(id, st) {
		op.Write(w, r, op.Unavailable("concurrency_limit", fmt.Sprintf("an organisation may hold %d streams open", perOrganisation), "5"))
		return
	}
	defer a.remove(id, st)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	session, err := server.Connect(context.WithValue(r.Context(), streamKey{}, st), st.transport, nil)
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

// post takes a message for a stream, from whom it belongs to.
func (a *streams) post(w http.ResponseWriter, r *http.Request, id string, v *visit) {
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
	if st == nil || st.owner != v.owner() { // nobody learns that the stream of another is there
		op.Write(w, r, op.NotFound("open stream of yours"))
		return
	}
	st.visit.Store(v)
	st.transport.ServeHTTP(w, r)
}

func (a *streams) add(id string, st *stream) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orgs[st.org] >= perOrganisation {
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
