// Package control has both ends of the control socket in the data folder, and the requests that go over it. Only the owner of the folder
// can open the socket.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

const socketName = "control.sock"

// socketPath returns a path to the socket through /proc/self/fd, because paths of Unix sockets are limited to 107 bytes.
func socketPath(data string) (path string, folder *os.File, err error) {
	folder, err = os.Open(data)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName), folder, nil
}

// Actions maps the name of a request to its handler. Requests and results are JSON.
type Actions map[string]func(ctx context.Context, in json.RawMessage) (any, error)

// Listen creates the control socket in the data folder and serves the actions on it until the context ends. It returns once the
// socket listens.
func Listen(ctx context.Context, data string, all Actions) error {
	path, folder, err := socketPath(data)
	if err != nil {
		return err
	}
	defer folder.Close()
	_ = os.Remove(filepath.Join(data, socketName))
	old := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{action}", func(w http.ResponseWriter, r *http.Request) { all.serve(w, r) })
	server := &http.Server{Handler: mux, ConnContext: withPeer}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go func() { _ = server.Serve(l) }()
	return nil
}

func (all Actions) serve(w http.ResponseWriter, r *http.Request) {
	do, ok := all[r.PathValue("action")]
	if !ok {
		http.Error(w, "the running soniq does not know this; is it another version?", http.StatusNotFound)
		return
	}
	in, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, err := do(r.Context(), in)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

// ErrNotRunning is returned by Call if no server runs on the data folder.
var ErrNotRunning = errors.New("no soniq runs on this data folder")

// Call sends a request to the server that runs on the data folder, and decodes the result into out.
func Call(ctx context.Context, data, action string, in, out any) error {
	path, folder, err := socketPath(data)
	if err != nil {
		return ErrNotRunning
	}
	defer folder.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://control/"+action, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return ErrNotRunning
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		return errors.New(string(bytes.TrimSpace(text)))
	}
	return json.NewDecoder(answer.Body).Decode(out)
}
