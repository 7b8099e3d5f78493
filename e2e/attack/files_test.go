package attack

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// record is a recording as the API shows it.
type record struct{ ID, URL string }

// recordedCall makes a call that is recorded, and returns its recording, with an address that the client signed.
func recordedCall(o *fixture.Office, c *rig.Client) (r record) {
	o.T.Helper()
	path := o.ConnectCall()
	o.AdaPhone.Do("hangup", "")
	o.Webhook.Wait("call.recording", time.Minute, func(rig.Event) bool { return true })
	c.Want(200, "GET", path+"/recording", nil, &r)
	return r
}

// fetch returns the answer to a request without a credential.
func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	a, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

// A signed address of a recording ends with the key that made it, and with the recording. Addresses of other keys go on.
func TestFiles_SignedAddressEndsWithItsKey(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOffice(s)
	var key struct{ ID, Key string }
	o.Want(201, "POST", "/api-keys", map[string]any{"name": "leaked", "scopes": []string{"calls:read"}}, &key)
	leaked := &rig.Client{T: t, Server: s, Org: o.Org.Org, Key: key.Key, Prefix: o.Prefix}
	of := recordedCall(o, leaked)
	var own record
	o.Want(200, "GET", "/recordings/"+of.ID, nil, &own)
	for _, url := range []string{of.URL, own.URL} {
		if status, body := fetch(t, url); status != 200 || !strings.HasPrefix(body, "RIFF") {
			t.Fatalf("%s: %d %.200s", url, status, body)
		}
	}
	if status, _ := fetch(t, strings.Replace(own.URL, "&by=", "&by=x", 1)); status != 401 {
		t.Errorf("another maker: %d", status)
	}
	if status, _ := fetch(t, strings.Replace(own.URL, "&signature=", "&signature=x", 1)); status != 401 {
		t.Errorf("another signature: %d", status)
	}
	if status, _ := fetch(t, of.URL+"&channel=agent"); status != 401 {
		t.Errorf("a parameter that is not signed: %d", status)
	}
	o.Want(204, "DELETE", "/api-keys/"+key.ID, nil, nil)
	if status, body := fetch(t, of.URL); status != 401 || !strings.Contains(body, `"unauthenticated"`) {
		t.Errorf("the key is revoked: %d %s", status, body)
	}
	if status, _ := fetch(t, own.URL); status != 200 {
		t.Errorf("of another key: %d", status)
	}
	o.Want(204, "DELETE", "/recordings/"+of.ID, nil, nil)
	if status, body := fetch(t, own.URL); status != 410 {
		t.Errorf("the recording is deleted: %d %.200s", status, body)
	}
}

// A symbolic link in place of a recording is not followed: not when it is sent, and not into a backup.
func TestFiles_LinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Upset: true})
	o := fixture.NewOffice(s)
	r := recordedCall(o, o.Client)
	found, err := filepath.Glob(filepath.Join(s.Data, "recordings", "*", "*", "*", "*.wav"))
	if err != nil || len(found) != 1 {
		t.Fatalf("recordings %v, %v", found, err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("RIFF-like secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(found[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, found[0]); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{r.URL, "http://" + s.HTTP + o.Prefix + "/recordings/" + r.ID + "/audio?channel=caller"} {
		if status, body := fetch(t, url); status == 200 || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
	if a := o.Do("GET", "/recordings/"+r.ID+"/audio", nil); a.Status != 500 || strings.Contains(string(a.Body), "secret") {
		t.Errorf("with a key: %d %s", a.Status, a.Body)
	}
	if !strings.Contains(s.Log(), "not a plain file") {
		t.Error("the log does not tell the cause")
	}
	backup := filepath.Join(t.TempDir(), "backup")
	s.Command("backup", "--to", backup)
	err = filepath.WalkDir(backup, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			t.Errorf("the backup has %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Other users of the machine have no access to the data folder: what they could read is taken away, and where they could write the server
// does not start, and says what to do.
func TestFiles_DataFolderOfOthers(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	s.Stop()
	if err := os.Chmod(s.Data, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := s.TryStart(); err == nil || !strings.Contains(err.Error(), "chmod 700 "+s.Data) {
		t.Errorf("a folder in which all may write: %v", err)
	}
	if err := os.Chmod(s.Data, 0o755); err != nil {
		t.Fatal(err)
	}
	s.Start()
	if info, err := os.Stat(s.Data); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a folder that all may read: %v %v", info.Mode(), err)
	}
}
