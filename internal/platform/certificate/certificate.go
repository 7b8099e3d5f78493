// Package certificate serves a TLS certificate from files, and reads them again when they change.
package certificate

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

// Files is a certificate and its key in two PEM files. It is safe for concurrent use.
type Files struct {
	cert, key string
	log       *slog.Logger

	mu        sync.Mutex // guards the fields below
	checkedAt time.Time
	read      state // of the files in use
	refused   state // of the files that could not be used; their reason was logged
	loaded    *tls.Certificate
}

// state tells two contents of the files from each other.
type state [2]fileState

type fileState struct {
	modified time.Time
	size     int64
	inode    uint64
}

// checkInterval is the minimum time between two checks of the files.
const checkInterval = time.Second

// Open reads a certificate and its key.
func Open(cert, key string, log *slog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, log: log}
	return f, f.Reload()
}

// Config returns the configuration of a server that shows the certificate. TLS 1.2 is the minimum.
func (f *Files) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: f.get}
}

// Reload reads the files now, changed or not. If they cannot be used, the certificate in use stays.
func (f *Files) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load(f.look())
}

// get returns the certificate. It reads the files if they have changed since the last check, at most once a second.
func (f *Files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checkedAt) < checkInterval {
		return f.loaded, nil
	}
	f.checkedAt = time.Now()
	now := f.look()
	if now == f.read {
		return f.loaded, nil
	}
	if err := f.load(now); err != nil && now != f.refused {
		f.refused = now
		f.log.Warn("the changed certificate cannot be used; the one from before stays in use", "err", err)
	}
	return f.loaded, nil
}

// load reads the files, of which now is the state. The caller holds f.mu.
func (f *Files) load(now state) error {
	c, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("read certificate %s and key %s: %w", f.cert, f.key, err)
	}
	if f.loaded != nil && now != f.read {
		f.log.Info("certificate read again", "file", f.cert)
	}
	f.loaded, f.read, f.refused = &c, now, state{}
	return nil
}

func (f *Files) look() state { return state{look(f.cert), look(f.key)} }

func look(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	s := fileState{modified: info.ModTime(), size: info.Size()}
	if system, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = system.Ino
	}
	return s
}
