package speech

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"soniq/internal/intelligence/transcript"
)

// sherpaFile is the library with the C functions; it needs libonnxruntime.so of the same release in the same folder.
const sherpaFile = "libsherpa-onnx-c-api.so"

// sherpaHelp explains how to install the library.
const sherpaHelp = "unpack npm's sherpa-onnx-linux-x64 (or -arm64) 1.13.8 and set SONIQ_SHERPA to its folder"

// sherpaLibrary holds the C functions of sherpa-onnx that the worker calls. Handles are C pointers.
type sherpaLibrary struct {
	version       func() string
	open          func(config unsafe.Pointer) uintptr
	configure     func(recogniser uintptr, config unsafe.Pointer)
	stream        func(recogniser uintptr) uintptr
	accept        func(stream uintptr, rate int32, samples unsafe.Pointer, n int32)
	decode        func(recogniser, stream uintptr)
	result        func(stream uintptr) uintptr
	destroyResult func(json uintptr)
	destroyStream func(stream uintptr)
}

// sherpaPaths returns where the library is searched, in order: only the configured folder and its folder lib if one
// is configured; else the folder of the model, its folder lib, and the system's search path (LD_LIBRARY_PATH,
// /etc/ld.so.conf).
func sherpaPaths(folder, model string) []string {
	if folder != "" {
		return []string{filepath.Join(folder, sherpaFile), filepath.Join(folder, "lib", sherpaFile)}
	}
	return []string{filepath.Join(model, sherpaFile), filepath.Join(model, "lib", sherpaFile), sherpaFile}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// loadSherpa opens the library in a folder, or on the search path beside a model. If it is not found, cannot be
// loaded or is of an unsupported release, it returns a *transcript.MissingDependency.
func loadSherpa(folder, model string) (*sherpaLibrary, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, &transcript.MissingDependency{Problem: "sherpa-onnx is not supported on " + runtime.GOARCH,
			Remedy: "choose another transcriber"}
	}
	handle, err := openSherpa(sherpaPaths(folder, model))
	if err != nil {
		return nil, err
	}
	var l sherpaLibrary
	for _, f := range []struct {
		fn   any
		name string
	}{
		{&l.version, "SherpaOnnxGetVersionStr"}, {&l.open, "SherpaOnnxCreateOfflineRecognizer"},
		{&l.configure, "SherpaOnnxOfflineRecognizerSetConfig"}, {&l.stream, "SherpaOnnxCreateOfflineStream"},
		{&l.accept, "SherpaOnnxAcceptWaveformOffline"}, {&l.decode, "SherpaOnnxDecodeOfflineStream"},
		{&l.result, "SherpaOnnxGetOfflineStreamResultAsJson"}, {&l.destroyResult, "SherpaOnnxDestroyOfflineStreamResultJson"},
		{&l.destroyStream, "SherpaOnnxDestroyOfflineStream"},
	} {
		if _, err := purego.Dlsym(handle, f.name); err != nil {
			return nil, &transcript.MissingDependency{Problem: sherpaFile + " has no function " + f.name, Remedy: sherpaHelp}
		}
		purego.RegisterLibFunc(f.fn, handle, f.name)
	}
	return &l, checkSherpaVersion(l.version())
}

// openSherpa opens the first library that exists. If it exists and cannot be loaded, that is the error.
func openSherpa(paths []string) (uintptr, error) {
	runtime.LockOSThread() // dlerror is a second call and returns the error of the calling thread
	defer runtime.UnlockOSThread()
	var folders []string
	for _, path := range paths {
		handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err == nil {
			return handle, nil
		}
		if fileExists(path) {
			return 0, &transcript.MissingDependency{Problem: sherpaFile + " could not be loaded: " + err.Error(), Remedy: sherpaHelp}
		}
		if strings.Contains(path, "/") {
			folders = append(folders, filepath.Dir(path))
		}
	}
	return 0, &transcript.MissingDependency{Problem: sherpaFile + " was not found in " + strings.Join(folders, ", "), Remedy: sherpaHelp}
}

// checkSherpaVersion rejects releases whose structures may differ.
func checkSherpaVersion(version string) error {
	if slices.Contains(sherpaVersions, version) {
		return nil
	}
	return &transcript.MissingDependency{Problem: "sherpa-onnx " + version + " is not known here, only " + strings.Join(sherpaVersions,
		", "), Remedy: sherpaHelp}
}
