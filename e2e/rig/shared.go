package rig

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"soniq/internal/platform/db/pgtest"
)

// sharedServers holds the servers of this process that serve several tests, by their options.
var sharedServers = struct {
	sync.Mutex // guards the fields, and users and idle of the servers
	all        map[string]*sharedServer
	failed     bool           // one of those that have ended logged an error, or did not end in order
	ending     sync.WaitGroup // servers that end because no test uses them
}{all: map[string]*sharedServer{}}

// sharedServer serves several tests of a package, each in an organisation of its own.
type sharedServer struct {
	start  sync.Once
	server *Server
	err    error
	drop   func()      // removes its data
	users  int         // tests that use it
	idle   *time.Timer // ends it if no test has used it for idleTime; nil while tests use it
}

// idleTime is how long a shared server waits for its next test. An idle server takes 1 to 2 percent of a processor, and a start half a
// second to a second and a half.
const idleTime = 30 * time.Second

// Shared returns a server that other tests of the package use too, each in an organisation of its own. It is for
// claims that do not concern a start, a crash, a setting or the server as a whole. The server must not be stopped,
// and may log no error. Main ends it.
func Shared(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Data != "" || o.Upset || o.Binary != "" {
		t.Fatal("a test that chooses the data folder or the binary, or makes the server log errors, needs a server of its own: use Start")
	}
	if o.Alone {
		return Start(t, o)
	}
	Admit(t, o.load())
	o.raced = raced(t.Name(), o.DB)
	key := o.key()
	x := acquireShared(key)
	t.Cleanup(func() { releaseShared(key, x) })
	x.start.Do(func() { x.err = x.open(o) })
	if x.err != nil {
		t.Fatal(x.err)
	}
	s := *x.server
	s.T, s.shared = t, true
	s.since(t)
	return &s
}

// acquireShared returns the server with a key for one more test.
func acquireShared(key string) *sharedServer {
	sharedServers.Lock()
	defer sharedServers.Unlock()
	x := sharedServers.all[key]
	if x == nil {
		x = &sharedServer{}
		sharedServers.all[key] = x
	}
	if x.idle != nil {
		x.idle.Stop()
		x.idle = nil
	}
	x.users++
	return x
}

// releaseShared ends the use of a server by a test.
func releaseShared(key string, x *sharedServer) {
	sharedServers.Lock()
	defer sharedServers.Unlock()
	if x.users--; x.users == 0 {
		x.idle = time.AfterFunc(idleTime, func() { endIdle(key, x) })
	}
}

// endIdle ends a server unless a test has acquired it meanwhile.
func endIdle(key string, x *sharedServer) {
	sharedServers.Lock()
	if x.users > 0 || sharedServers.all[key] != x {
		sharedServers.Unlock()
		return
	}
	delete(sharedServers.all, key)
	sharedServers.ending.Add(1)
	sharedServers.Unlock()
	defer sharedServers.ending.Done()
	if !x.end() {
		sharedServers.Lock()
		sharedServers.failed = true
		sharedServers.Unlock()
	}
}

// key returns a string that is equal for options that need the same server.
func (o Options) key() string {
	var env []string
	for _, k := range slices.Sorted(maps.Keys(o.Env)) {
		env = append(env, k+"="+o.Env[k])
	}
	return fmt.Sprint(o.DB, o.Flags, env, o.raced)
}

// open starts the server on a new folder, and on a new PostgreSQL database if the options name a PostgreSQL server.
func (x *sharedServer) open(o Options) error {
	dir, err := os.MkdirTemp("", "soniq-shared-")
	if err != nil {
		return err
	}
	x.drop = func() { _ = os.RemoveAll(dir) }
	o.Data = dir
	if o.DB != "" {
		address, drop, err := pgtest.Create(o.DB)
		if err != nil {
			return err
		}
		o.DB = address
		x.drop = func() { _, _ = drop(), os.RemoveAll(dir) }
	}
	x.server = &Server{Data: o.Data, DB: o.DB, options: o, log: &log{}}
	return x.server.TryStart()
}

// since logs the server's output during a test if the test fails. It fails a test during which the server logged an
// error.
func (s *Server) since(t testing.TB) {
	mark := len(s.log.String())
	t.Cleanup(func() {
		text := s.log.String()[mark:]
		if t.Failed() {
			t.Logf("log of the server during the test:\n%s", tail(text, 200))
		}
		s.check(t, text)
	})
}

// check fails a test if a part of the log contains an error or a data race.
func (s *Server) check(t testing.TB, text string) {
	if strings.Contains(text, "DATA RACE") {
		t.Errorf("the race detector found something:\n%s", text)
	}
	if errors := lines(text, "level=ERROR"); errors != "" && !s.options.Upset {
		t.Errorf("the server logged errors:\n%s", errors)
	}
}

// stopShared ends the shared servers of this process. It reports whether each of them, also of those that were idle, ended in order and
// logged no error.
func stopShared() bool {
	sharedServers.Lock()
	ok, left := true, sharedServers.all
	sharedServers.all = map[string]*sharedServer{}
	sharedServers.Unlock()
	for _, x := range left {
		ok = x.end() && ok
	}
	sharedServers.ending.Wait()
	return ok && !sharedServers.failed
}

// end ends the server and removes its data. It reports whether the server ended in order and logged no error.
func (x *sharedServer) end() bool {
	ok := x.server == nil || x.stop()
	if x.drop != nil {
		x.drop()
	}
	return ok
}

func (x *sharedServer) stop() bool {
	var errs []error
	if err := x.server.end(syscall.SIGTERM); err != nil {
		errs = append(errs, err)
	}
	text := x.server.log.String()
	if strings.Contains(text, "DATA RACE") || lines(text, "level=ERROR") != "" {
		errs = append(errs, fmt.Errorf("a server that tests shared logged errors or a data race:\n%s", tail(text, 200)))
	}
	for _, err := range errs {
		fmt.Fprintln(os.Stderr, err)
	}
	return len(errs) == 0
}
