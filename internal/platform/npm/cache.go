package npm

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// Verify compares the hash of a package with the integrity that a lock file names, such as sha512-….
func (p Package) Verify(packed []byte, integrity string) error {
	sum := sha512.Sum512(packed)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != integrity {
		return fmt.Errorf("the hash of %s %s is %s, not %s of the lock file: it is damaged or not the same package", p.Name, p.Version,
			got, integrity)
	}
	return nil
}

// Cached returns a package with the given integrity from the user's cache folder. A package that is not there is fetched from the registry
// that npm_config_registry names, after a call of fetching. It has at most maxBytes.
func (p Package) Cached(ctx context.Context, integrity string, maxBytes int64, fetching func()) ([]byte, error) {
	cached := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cached = filepath.Join(dir, "soniq", p.FileName())
		if packed, err := os.ReadFile(cached); err == nil && p.Verify(packed, integrity) == nil {
			return packed, nil
		}
	}
	fetching()
	from := cmp.Or(os.Getenv("npm_config_registry"), os.Getenv("NPM_CONFIG_REGISTRY"), Registry)
	body, _, err := p.Fetch(ctx, http.DefaultClient, from)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	packed, err := io.ReadAll(io.LimitReader(body, maxBytes))
	if err != nil {
		return nil, err
	}
	if err := p.Verify(packed, integrity); err != nil {
		return nil, err
	}
	if cached != "" && os.MkdirAll(filepath.Dir(cached), 0o755) == nil {
		_ = WriteFile(cached, packed) // without the cache the next build fetches it again
	}
	return packed, nil
}

// WriteFile replaces a file at once, so that an interrupted run leaves no half of it.
func WriteFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "*.part")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
