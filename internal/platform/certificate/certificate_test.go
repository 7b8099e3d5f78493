package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pair returns a new certificate with a name, and its key, as PEM.
func pair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: hidden})
}

// logged collects log lines.
type logged struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// A renewed certificate is shown at the first handshake a second later, also if the time of its files is that of the files before. A pair
// that cannot be used keeps the one from before and is logged once.
//
// https://github.com/eclipse-mosquitto/mosquitto/issues/1877, https://github.com/home-assistant/core/issues/14237
func TestFiles_Renewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, out := t.TempDir(), &logged{}
		certPath, keyPath := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		put := func(path string, content []byte) {
			t.Helper()
			fresh := path + ".new"
			if err := os.WriteFile(fresh, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(fresh, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(fresh, path); err != nil {
				t.Fatal(err)
			}
		}
		one, oneKey := pair(t, "one")
		two, twoKey := pair(t, "two")
		put(certPath, one)
		put(keyPath, oneKey)
		f, err := Open(certPath, keyPath, slog.New(slog.NewTextHandler(out, nil)))
		if err != nil {
			t.Fatal(err)
		}
		shows := func(when, want string) {
			t.Helper()
			time.Sleep(checkInterval)
			c, err := f.Config().GetCertificate(&tls.ClientHelloInfo{})
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(c.Certificate[0])
			if err != nil || leaf.Subject.CommonName != want {
				t.Errorf("%s: %v %v, want %s", when, leaf.Subject, err, want)
			}
		}
		shows("at first", "one")
		put(certPath, two)
		for range 5 {
			shows("the key is not renewed yet", "one")
		}
		put(keyPath, twoKey)
		shows("renewed", "two")
		put(certPath, []byte("broken"))
		for range 5 {
			shows("broken", "two")
		}
		if f.Reload() == nil {
			t.Error("a broken certificate is read without an error")
		}
		if err := os.Remove(certPath); err != nil {
			t.Fatal(err)
		}
		shows("removed", "two")
		put(certPath, one)
		put(keyPath, oneKey)
		if err := f.Reload(); err != nil {
			t.Error(err)
		}
		shows("read on request", "one")
		if n := strings.Count(out.text.String(), "cannot be used"); n != 3 {
			t.Errorf("%d warnings, want one for each of three unusable states:\n%s", n, out.text.String())
		}
	})
}

func TestOpen_UnusableFiles(t *testing.T) {
	if _, err := Open("/nowhere/cert.pem", "/nowhere/key.pem", slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "/nowhere/cert.pem") {
		t.Errorf("no files: %v", err)
	}
}
