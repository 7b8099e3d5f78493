package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// TestOpenIDClient_AuthorizationServerRefusals proves that every invalid request of openid-client is refused. The
// program prints the authorization requests, and the test answers them as the user.
func TestOpenIDClient_AuthorizationServerRefusals(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		ada := signedIn(t, s)
		c := exec.Command("node", "oauth.mjs", "http://"+s.HTTP)
		c.Dir = filepath.Join(rig.Root(), "e2e", "node")
		claims := 0
		converse(t, c, func(line string) string {
			if words := strings.SplitN(line, " ", 4); len(words) == 4 && words[0] == "VISIT" {
				return ada.answers(words[3], words[1], words[2]) + "\n"
			}
			var found struct{ Claim, Wrong string }
			if err := json.Unmarshal([]byte(line), &found); err != nil || found.Wrong != "" {
				t.Errorf("%s: %s", found.Claim, found.Wrong)
			}
			claims++
			return ""
		})
		if claims != 31 {
			t.Errorf("%d claims were tried", claims)
		}
	})
}

// converse starts a program, answers each line it writes, and waits for its end.
func converse(t *testing.T, c *exec.Cmd, answer func(line string) string) {
	t.Helper()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var wrong strings.Builder
	c.Stderr = &wrong
	if err := rig.Launch(c); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if _, err := fmt.Fprint(in, answer(lines.Text())); err != nil {
			t.Errorf("the program does not listen: %v", err)
		}
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", c, err, wrong.String())
	}
}
