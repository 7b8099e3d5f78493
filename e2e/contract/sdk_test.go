package contract_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// The TypeScript client is generated from the description, packed, and installed from its tarball as a customer
// would. A program that compiles in strict mode uses it. The program places a call, follows its events across a lost
// connection, verifies the webhook and reads the call detail record.
func TestTypeScriptClient_FromTarball(t *testing.T) {
	t.Parallel()
	tarball := packed(t)
	s := rig.Start(t, rig.Options{Load: rig.Browser, Flags: []string{"--transcriber", "off"}})
	c := s.Org("live")
	ada, bob := c.AddUser("Ada"), c.AddUser("Bob")
	speech := filepath.Join(t.TempDir(), "silence.wav")
	write(t, speech, silence(30))
	s.Phone(ada.SIP, rig.PhoneOptions{Auto: true, Say: speech})
	s.Phone(bob.SIP, rig.PhoneOptions{Auto: true, Say: speech})

	project := t.TempDir()
	write(t, filepath.Join(project, "package.json"), `{"name":"customer","private":true,"type":"module"}`)
	run(t, project, nil, "npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", tarball)
	if installed, _ := filepath.Glob(filepath.Join(project, "node_modules", "*", "*")); len(installed) != 1 {
		t.Errorf("the client brings others along: %v", installed)
	}
	program, err := os.ReadFile("customer.ts")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(project, "customer.ts"), string(program))
	if said, err := tool(t, project, "tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext", "--types", "node",
		"--typeRoots", filepath.Join(modules(), "@types"), "customer.ts"); err != nil {
		t.Fatalf("the compiler refuses the program: %v\n%s", err, said)
	}
	said := run(t, project, []string{"SONIQ_URL=http://" + s.HTTP, "SONIQ_KEY=" + c.Key, "CALLER=" + ada.ID, "CALLED=" + bob.Extension}, "node", "customer.js")
	if !strings.Contains(said, "the end") {
		t.Errorf("the program did not end:\n%s", said)
	}
	t.Log(said)
}

// packed builds the client in a folder of its own, and returns its tarball.
func packed(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(rig.Root(), "sdk", "typescript"))); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(folder, "node_modules"))
	if err := os.Symlink(modules(), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	run(t, folder, nil, "node", "generate.mjs", description())
	if said, err := tool(t, folder, "tsc", "-p", "."); err != nil {
		t.Fatalf("the client does not compile: %v\n%s", err, said)
	}
	out := strings.Fields(run(t, folder, nil, "npm", "pack", "--loglevel=error"))
	return filepath.Join(folder, out[len(out)-1])
}

// run runs a program and returns its output. It fails the test if the program fails.
func run(t *testing.T, folder string, environment []string, name string, arguments ...string) string {
	t.Helper()
	c := exec.Command(name, arguments...)
	c.Dir, c.Env = folder, append(os.Environ(), environment...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// silence returns a WAV file of silence, 8 kHz and 16 bits, which telephones need as input.
func silence(seconds int) string {
	size := uint32(seconds * 16000)
	header := []byte("RIFF....WAVEfmt ")
	binary.LittleEndian.PutUint32(header[4:], 36+size)
	for _, word := range []uint32{16, 1 | 1<<16, 8000, 16000, 2 | 16<<16} {
		header = binary.LittleEndian.AppendUint32(header, word)
	}
	header = binary.LittleEndian.AppendUint32(append(header, "data"...), size)
	return string(header) + strings.Repeat("\x00", int(size))
}

// modules returns the folder of npm packages.
func modules() string { return filepath.Join(rig.Root(), "e2e", "node", "node_modules") }
