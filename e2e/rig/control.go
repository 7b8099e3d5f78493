package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// control asks the running server through the socket in its data folder, as the commands of soniq do. A test needs an organisation and a
// key; a process for each of them would cost as much as a call.
func (s *Server) control(action string, in any) string {
	s.T.Helper()
	answer, err := s.tryControl(action, in)
	if err != nil {
		s.T.Fatalf("%s: %v", action, err)
	}
	return answer
}

func (s *Server) tryControl(action string, in any) (answer string, err error) {
	folder, err := os.Open(s.Data)
	if err != nil {
		return "", err
	}
	defer folder.Close()
	path := fmt.Sprintf("/proc/self/fd/%d/control.sock", folder.Fd()) // short enough for a socket, however deep the folder lies
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	r, err := client.Post("http://control/"+action, "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	if r.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", r.Status, text)
	}
	return answer, json.Unmarshal(text, &answer)
}
