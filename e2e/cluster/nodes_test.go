package cluster

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// at returns the organisation as a client of another node.
func at(o *fixture.Org, s *rig.Server) *fixture.Org {
	c := *o.Client
	c.Server = s
	return &fixture.Org{Client: &c, Webhook: o.Webhook}
}

// twoNodes starts two nodes and adds an organisation. The phone of Ada registers at the first node. The phone of Bob registers at the
// second, by bobTransport.
func twoNodes(t *testing.T, bobTransport string) (o *fixture.Office, first, second *rig.Server) {
	t.Helper()
	options := rig.Options{Env: fixture.NoSpeech}
	first = rig.Node(t, options)
	second = rig.Node(t, options, first)
	o = &fixture.Office{Org: fixture.NewOrg(first)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
	o.BobPhone = at(o.Org, second).Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true, Transport: bobTransport})
	return o, first, second
}

// registered reports whether the telephone of a user is registered according to a node.
func registered(o *fixture.Org, user string) bool {
	o.T.Helper()
	var page struct {
		Data []struct {
			Registration struct{ Status string }
		}
	}
	o.Want(200, "GET", "/devices?user_id="+user, nil, &page)
	return len(page.Data) > 0 && page.Data[0].Registration.Status == "registered"
}

func TestNodes_StartKeepsPhonesOfOthers(t *testing.T) {
	t.Parallel()
	o, first, second := twoNodes(t, "tcp")
	first.Stop()
	first.Start()
	if !registered(o.Org, o.Bob.ID) {
		t.Error("the start of one node ended the registration of a telephone connected to the other")
	}
	there := at(o.Org, second)
	ada := there.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
	ada.Dial(o.Bob.Extension)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	there.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
}

func TestNodes_CallToPhoneOfOtherNodeNamesTheReason(t *testing.T) {
	t.Parallel()
	o, _, _ := twoNodes(t, "tcp")
	o.AdaPhone.Do("dial", o.Bob.Extension)
	if e := o.AdaPhone.Wait("CALL_CLOSED", ""); !strings.Contains(e.Param, "480") {
		t.Errorf("the call ended with %q", e.Param)
	}
	call := o.CDR(o.Ada.Extension).CallID
	r := o.Do("GET", "/calls/"+call+"/events", nil)
	if !strings.Contains(string(r.Body), "connected to another server") {
		t.Errorf("the timeline does not name the reason: %s", r.Body)
	}
}

func TestNodes_DeviceAtTwoNodesKeepsBoth(t *testing.T) {
	t.Parallel()
	o, _, second := twoNodes(t, "tcp")
	here := o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true, Transport: "tcp"})
	o.AdaPhone.Dial(o.Bob.Extension)
	here.Wait("CALL_ESTABLISHED", "")
	o.AdaPhone.Do("hangup", "")
	here.Wait("CALL_CLOSED", "")
	ada := at(o.Org, second).Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
	ada.Dial(o.Bob.Extension)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
}

// presence returns the presence of a user according to a node.
func presence(o *fixture.Org, user string) string {
	o.T.Helper()
	var agent struct{ Presence struct{ Status string } }
	o.Want(200, "GET", "/agents/"+user, nil, &agent)
	return agent.Presence.Status
}

func TestNodes_CallsOfLostNodeAreClosed(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "the lease of a node has to end")
	o, first, second := twoNodes(t, "udp")
	o.AdaPhone.Dial(o.Bob.Extension)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	call := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	there := at(o.Org, second)
	if before := presence(there, o.Ada.ID); before != "busy" {
		t.Errorf("Ada is %s in the call", before)
	}
	first.Kill()
	there.Webhook.Wait("call.ended", 20*time.Second, func(e rig.Event) bool { return e.Data["call_id"] == call })
	if r := there.CDR(o.Ada.Extension); r.String() != "internal completed node_crash system 0" {
		t.Errorf("record: %s", r)
	}
	rig.Until(t, "Ada and Bob to be free", 5*time.Second, func() bool {
		return presence(there, o.Ada.ID) != "busy" && presence(there, o.Bob.ID) != "busy"
	})
	if status, code := recordingState(there, call); status != "processing" || code != "node_lost" {
		t.Errorf("the recording at the lost node: %s %s", status, code)
	}
	first.Start()
	if r := o.Do("GET", "/calls/live", nil); strings.Contains(string(r.Body), call) {
		t.Errorf("the call is carried again: %s", r.Body)
	}
	rig.Until(t, "the node that came back finishes the recording", 20*time.Second, func() bool {
		status, code := recordingState(there, call)
		return status == "available" && code != "node_lost"
	})
}

// recordingState returns the status of the recording of a call according to a node, and the code of its error.
func recordingState(o *fixture.Org, call string) (status, code string) {
	o.T.Helper()
	var page struct {
		Data []struct {
			Status string
			Error  *struct{ Code string }
		}
	}
	o.Want(200, "GET", "/recordings?call_id="+call, nil, &page)
	if len(page.Data) != 1 {
		o.T.Fatalf("recordings of the call: %+v", page.Data)
	}
	if e := page.Data[0].Error; e != nil {
		code = e.Code
	}
	return page.Data[0].Status, code
}

func TestNodes_RestartWithinLeaseKeepsCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "audio is heard before and after the kill")
	options := rig.Options{Env: fixture.NoSpeech}
	first := rig.Node(t, options)
	rig.Node(t, options, first)
	o := fixture.NewOffice(first)
	path := o.ConnectCall()
	first.Kill()
	first.Start()
	o.HearsOnly("Ada after the crash", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob after the crash", o.BobPhone, fixture.AdaTone)
	o.Want(200, "POST", path+"/end", map[string]any{}, nil)
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed api api 0" {
		t.Errorf("record: %s", r)
	}
}

// audioFiles returns the recordings on the disk of a node.
func audioFiles(t *testing.T, s *rig.Server) (found []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.Data, "recordings"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// record makes the n-th call of an organisation, and returns its recording.
func record(o *fixture.Office, n int) fixture.Recording {
	o.T.Helper()
	o.ConnectCall()
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	return o.Recording(o.CDRs(n, "")[0].CallID)
}

func TestNodes_RecordingOfOtherNodeIsDeleted(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "two recorded calls, and two starts of a node")
	options := rig.Options{Env: fixture.NoSpeech}
	first := rig.Node(t, options)
	second := rig.Node(t, options, first)
	o := fixture.NewOffice(first)
	there := at(o.Org, second)
	one, two := record(o, 1), record(o, 2)
	var no struct{ Code, Detail string }
	there.Want(503, "GET", "/recordings/"+one.ID+"/audio", nil, &no)
	if no.Code != "file_unavailable" || strings.Contains(no.Detail, "database cannot") {
		t.Errorf("audio of another node: %+v", no)
	}
	there.Want(204, "DELETE", "/recordings/"+one.ID, nil, nil)
	rig.Until(t, "the file to be deleted by its node", 10*time.Second, func() bool { return len(audioFiles(t, first)) == 1 })
	first.Stop()
	there.Want(204, "DELETE", "/recordings/"+two.ID, nil, nil)
	first.Start()
	rig.Until(t, "the other file to be deleted at the start", 10*time.Second, func() bool { return len(audioFiles(t, first)) == 0 })
}
