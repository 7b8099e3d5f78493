package mcpbridge

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Credentials are the tokens of a person for one server, in the form of their file. The npm package reads and writes
// the same form.
type Credentials struct {
	URL          string    `json:"url"`
	Resource     string    `json:"resource"`
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"client_id"`
	TokenAt      string    `json:"token_endpoint"`
	RevokeAt     string    `json:"revocation_endpoint"`
	IntrospectAt string    `json:"introspection_endpoint"`
	LoggedInAt   time.Time `json:"logged_in_at"`
	Access       string    `json:"access_token"`
	Refresh      string    `json:"refresh_token"`
	Scope        string    `json:"scope"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// expiresSoon reports whether the token expires within the next minute.
func (k *Credentials) expiresSoon() bool { return time.Until(k.ExpiresAt) < time.Minute }

// Store is the file with the credentials for one server.
type Store struct{ File string }

// StoreOf returns the store of a server: in SONIQ_MCP_HOME, else in soniq/mcp of XDG_CONFIG_HOME or ~/.config.
func StoreOf(address *url.URL) (*Store, error) {
	folder := os.Getenv("SONIQ_MCP_HOME")
	if folder == "" {
		settings := os.Getenv("XDG_CONFIG_HOME")
		if settings == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("find where logins are kept: %w", err)
			}
			settings = filepath.Join(home, ".config")
		}
		folder = filepath.Join(settings, "soniq", "mcp")
	}
	sum := sha256.Sum256([]byte(address.String()))
	return &Store{filepath.Join(folder, notInFileName.ReplaceAllString(address.Host, "_")+"-"+hex.EncodeToString(sum[:6])+".json")}, nil
}

// notInFileName matches characters of a host that names of files must not have.
var notInFileName = regexp.MustCompile(`[^a-zA-Z0-9.-]`)

// Address parses the address of a tool server and normalises it, because the name of the store depends on it.
func Address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--url %q is not an address such as https://pbx.example.com/mcp/sse", text)
	}
	u.Host = strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; strings.HasSuffix(u.Host, port) {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// Read returns the credentials, or nil if there are none or the file is damaged.
func (s *Store) Read() (*Credentials, error) {
	b, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read login: %w", err)
	}
	var k Credentials
	if json.Unmarshal(b, &k) != nil || k.Access == "" || k.Refresh == "" {
		return nil, nil
	}
	return &k, nil
}

// write replaces the file atomically.
func (s *Store) write(k Credentials) error {
	b, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		return err
	}
	next := s.File + "." + rand.Text()
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("keep login: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(next, s.File)
	}
	if err != nil {
		_ = os.Remove(next)
		return fmt.Errorf("keep login: %w", err)
	}
	return nil
}

// CheckMode returns an error with the remedy if other users of this machine can read the file.
func (s *Store) CheckMode() error {
	i, err := os.Stat(s.File)
	if err == nil && i.Mode().Perm()&0o077 != 0 {
		err = errors.New("chmod 600 " + s.File)
	}
	return err
}

func (s *Store) delete() error {
	if err := os.Remove(s.File); err != nil {
		return fmt.Errorf("forget login: %w", err)
	}
	return nil
}
