package mcpbridge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// callbackServer is the HTTP server on this machine to which the browser returns after the login (RFC 8252 §7.3).
type callbackServer struct {
	redirect string
	state    string
	from     authServer
	taken    atomic.Bool
	codes    chan result
	done     chan error // nil if the person is logged in
	server   *http.Server
}

type result struct {
	code string
	err  error
}

// listen starts a callback server. Port 0 picks a free one.
func listen(port int, state string, from authServer) (*callbackServer, error) {
	at, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	a := &callbackServer{redirect: "http://" + at.Addr().String() + "/callback", state: state, from: from, codes: make(chan result, 1),
		done: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		status, text := a.handleCallback(r.Context(), r.URL.Query())
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = fmt.Fprintln(w, text)
	})
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: requestTimeout}
	go func() { _ = a.server.Serve(at) }() // ends with close
	return a, nil
}

// close stops the server. It gives the response to the browser one second to be sent.
func (a *callbackServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = a.server.Shutdown(ctx)
	_ = a.server.Close()
}

// readPasted takes redirect addresses that a person pastes, from a browser on another machine. It runs until the
// program ends, because reading standard input cannot be cancelled.
func (a *callbackServer) readPasted(in io.Reader) {
	if in == nil {
		return
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if u, err := url.Parse(strings.TrimSpace(lines.Text())); err == nil && u.RawQuery != "" {
			_, text := a.handleCallback(context.Background(), u.Query())
			fmt.Fprintln(os.Stderr, text)
		}
	}
}

// handleCallback accepts one redirect of this login and returns status and text for the browser. It refuses another
// state, and a second redirect.
func (a *callbackServer) handleCallback(ctx context.Context, q url.Values) (status int, text string) {
	if len(q["state"]) != 1 || q.Get("state") != a.state || a.taken.Swap(true) {
		return http.StatusBadRequest, "This is not the answer to the login that waits here."
	}
	r := a.authorizationCode(q)
	a.codes <- r
	err := r.err
	if err == nil {
		select {
		case err = <-a.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return http.StatusBadRequest, "You are not logged in: " + err.Error()
	}
	return http.StatusOK, "You are logged in. You can close this window."
}

// authorizationCode returns the code of a redirect, or the reason why it has none. The issuer must be the server that
// was asked (RFC 9207).
func (a *callbackServer) authorizationCode(q url.Values) result {
	if iss := q["iss"]; (a.from.server.Identified || len(iss) > 0) && (len(iss) != 1 || iss[0] != a.from.server.Issuer) {
		return result{err: fmt.Errorf("the answer is from %q, not from %s", strings.Join(iss, " "), a.from.server.Issuer)}
	}
	if q.Get("error") == "access_denied" {
		return result{err: fmt.Errorf("you did not allow it")}
	}
	if q.Has("error") {
		return result{err: fmt.Errorf("%s: %s", q.Get("error"), q.Get("error_description"))}
	}
	if len(q["code"]) != 1 {
		return result{err: fmt.Errorf("the answer has no code")}
	}
	return result{code: q.Get("code")}
}

// wait returns the authorization code. done reports to the browser whether the code was accepted.
func (a *callbackServer) wait(ctx context.Context) (code string, done func(error), err error) {
	select {
	case r := <-a.codes:
		return r.code, func(err error) { a.done <- err }, r.err
	case <-ctx.Done():
		return "", nil, context.Cause(ctx)
	}
}

// openBrowser opens an address in $BROWSER, or with xdg-open if there is a display. It reports whether a program was
// started.
func openBrowser(address string) bool {
	program := os.Getenv("BROWSER")
	if program == "" && (os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "") {
		program = "xdg-open"
	}
	if program == "" {
		return false
	}
	c := exec.Command(program, address)
	if c.Start() != nil {
		return false // the address was printed already
	}
	go func() { _ = c.Wait() }()
	return true
}
