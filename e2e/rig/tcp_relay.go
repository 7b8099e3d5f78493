package rig

import (
	"io"
	"net"
	"sync"
	"testing"
)

// TCPRelay passes TCP connections of phones on to a server, until they are cut.
type TCPRelay struct {
	Address string // at which phones connect

	listener net.Listener
	server   string
	running  sync.WaitGroup
	ended    chan struct{}

	mu    sync.Mutex // guards the fields below
	conns map[net.Conn]bool
	open  chan struct{} // closed while connections are passed on
}

// TCPRelay starts a relay to the SIP port of the server. It ends with the test.
func (s *Server) TCPRelay(t testing.TB) *TCPRelay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &TCPRelay{Address: listener.Addr().String(), listener: listener, server: s.SIP, conns: map[net.Conn]bool{},
		open: make(chan struct{}), ended: make(chan struct{})}
	close(r.open)
	r.running.Add(1)
	go r.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		close(r.ended)
		r.Cut()
		r.running.Wait()
	})
	return r
}

func (r *TCPRelay) accept() {
	defer r.running.Done()
	for {
		phone, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		open := r.open
		r.mu.Unlock()
		select {
		case <-open:
		case <-r.ended:
			_ = phone.Close()
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			_ = phone.Close()
			continue
		}
		r.mu.Lock()
		r.conns[phone], r.conns[server] = true, true
		r.mu.Unlock()
		r.running.Add(2)
		go r.pass(phone, server)
		go r.pass(server, phone)
	}
}

// Hold accepts new connections and passes nothing on until release is called.
func (r *TCPRelay) Hold() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make(chan struct{})
	r.open = open
	return func() { close(open) }
}

// pass copies one direction. The end of one connection ends the other one.
func (r *TCPRelay) pass(from, to net.Conn) {
	defer r.running.Done()
	_, _ = io.Copy(to, from)
	for _, c := range []net.Conn{from, to} {
		_ = c.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, from)
}

// Cut closes all connections. Phones may connect again.
func (r *TCPRelay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
	}
}
