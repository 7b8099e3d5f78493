package recovery

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestKill_CallOnlyInJournal kills the server while a call that was answered is in the journal alone, because the database of the server is
// locked. The call goes on after the restart and has a record.
func TestKill_CallOnlyInJournal(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Start(t, rig.Options{Env: fixture.NoSpeech}))
	unlock := fixture.LockDatabase(t, o.Server)
	o.AdaPhone.Dial(o.Bob.Extension)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone) // by then both dialogs are in the journal
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	o.Server.Kill()
	unlock()
	o.Server.Start()
	o.HearsOnly("Ada after the crash", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob after the crash", o.BobPhone, fixture.AdaTone)
	o.BobPhone.Do("hangup", "")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed agent_hangup agent 0" || r.AnsweredAt == nil {
		t.Errorf("record: %s, answered at %v", r, r.AnsweredAt)
	}
}
