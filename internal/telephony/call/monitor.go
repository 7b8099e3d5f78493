package call

import (
	"cmp"
	"context"
	"net/http"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

func (s *Service) monitorOperations() []op.Operation {
	w := access.SupervisorWrite
	return []op.Operation{
		op.New("calls.monitor.start", "POST /calls/{id}/monitor", w, "Listen to a call; whisper and barge need calls:write too",
			s.StartMonitoring).WithSideEffects().Status(201).Async(),
		op.New("calls.monitor.update", "PATCH /calls/{id}/monitor/{monitor_id}", w,
			"Change between listening, whispering and joining; whisper and barge need calls:write too",
			s.ChangeMonitoring).WithSideEffects().Async(),
		op.Delete("calls.monitor.end", "DELETE /calls/{id}/monitor/{monitor_id}", w, "Stop listening", s.StopMonitoring).WithSideEffects(),
	}
}

// Monitor is a supervisor on a call.
type Monitor struct {
	ID           string   `json:"id" example:"mon_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	CallID       string   `json:"call_id"`
	SupervisorID string   `json:"supervisor_id"`
	Mode         string   `json:"mode" enum:"listen,whisper,barge"`
	Status       string   `json:"status" enum:"ringing,active,ended"`
	AudibleTo    []string `json:"audible_to" nullable:"false" enum:"agent,caller" doc:"Who hears the supervisor"`
	StartedAt    db.Time  `json:"started_at"`
	EndedAt      *db.Time `json:"ended_at"`
}

// MonitorIn holds the input of StartMonitoring.
type MonitorIn struct {
	ActionIn
	Body *struct {
		UserID   string `json:"user_id,omitempty" maxLength:"40" doc:"The supervisor; the credential's user unless given"`
		DeviceID string `json:"device_id,omitempty" maxLength:"40" doc:"The phone that rings; any of theirs unless given"`
		Mode     string `json:"mode,omitempty" enum:"listen,whisper,barge" default:"listen"`
		Deliver  string `json:"deliver,omitempty" enum:"ring_device,webrtc" default:"ring_device" doc:"webrtc rings the supervisor's phones in browsers only"`
	}
}

// StartMonitoring rings the supervisor's phone and connects it to the call.
func (s *Service) StartMonitoring(ctx context.Context, in *MonitorIn) (*op.Out[Monitor], error) {
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	c, err := s.startMonitorCommand(ctx, in)
	if err != nil {
		return nil, err
	}
	if _, err := s.findInProgress(ctx, in.ID); err != nil {
		return nil, err
	}
	if in.isAsync() {
		return s.monitorAsync(ctx, in.ID, c)
	}
	r, err := s.runCommand(ctx, in.ID, c)
	if err != nil {
		return nil, err
	}
	m, err := s.getMonitor(ctx, in.ID, r.MonitorID)
	if err != nil {
		return nil, err
	}
	return &op.Out[Monitor]{Body: m}, nil
}

// startMonitorCommand builds the command of a request, or returns every violation at once.
func (s *Service) startMonitorCommand(ctx context.Context, in *MonitorIn) (c StartMonitor, err error) {
	who, _ := access.From(ctx)
	c = StartMonitor{UserID: who.UserID, Mode: "listen"}
	if b := in.Body; b != nil {
		c = StartMonitor{UserID: cmp.Or(b.UserID, c.UserID), DeviceID: b.DeviceID, Mode: cmp.Or(b.Mode, c.Mode),
			BrowserOnly: b.Deliver == "webrtc"}
	}
	if err := checkAudibleMode(who, c.Mode); err != nil {
		return c, err
	}
	p := Placement{Org: who.OrgID, UserID: c.UserID, DeviceID: c.DeviceID}
	wrong, err := s.checkParties(ctx, &p, "")
	if err != nil {
		return c, err
	}
	c.UserID = p.UserID
	return c, violationsError(wrong)
}

// checkAudibleMode returns insufficient_scope if the mode makes the supervisor audible and the credential may only
// listen.
func checkAudibleMode(who access.Principal, mode string) error {
	need := access.Both(access.SupervisorWrite, access.CallsWrite)
	if mode == "listen" || need.MetBy(who.Scopes) {
		return nil
	}
	return &op.Error{Code: "insufficient_scope", Detail: mode + " needs " + need.String(),
		Header: http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="` + string(access.CallsWrite) + `"`}},
		Extra:  map[string]any{"required_scopes": []access.Scope{access.CallsWrite}}}
}

// OneMonitor holds the ids of a call and of a supervisor on it.
type OneMonitor struct {
	ID        string `path:"id" maxLength:"40"`
	MonitorID string `path:"monitor_id" maxLength:"40"`
}

// MonitorChangeIn holds the input of ChangeMonitoring.
type MonitorChangeIn struct {
	OneMonitor
	Prefer string `header:"Prefer" maxLength:"200" doc:"respond-async: answer 202 at once, the outcome follows on the event stream (RFC 7240)"`
	Body   struct {
		Mode string `json:"mode" enum:"listen,whisper,barge"`
	}
}

// ChangeMonitoring changes between listening, whispering and joining.
func (s *Service) ChangeMonitoring(ctx context.Context, in *MonitorChangeIn) (*op.Out[Monitor], error) {
	who, _ := access.From(ctx)
	if err := checkAudibleMode(who, in.Body.Mode); err != nil {
		return nil, err
	}
	if err := s.checkMonitorActive(ctx, in.OneMonitor); err != nil {
		return nil, err
	}
	if prefersAsync(in.Prefer) {
		return s.changeMonitorAsync(ctx, in)
	}
	if _, err := s.runCommand(ctx, in.ID, UpdateMonitor{ID: in.MonitorID, Mode: in.Body.Mode}); err != nil {
		return nil, err
	}
	m, err := s.getMonitor(ctx, in.ID, in.MonitorID)
	if err != nil {
		return nil, err
	}
	return op.OK(m)
}

// StopMonitoring hangs up the supervisor's leg. If the supervisor has left already, it does nothing.
func (s *Service) StopMonitoring(ctx context.Context, in *OneMonitor) error {
	m, err := s.getMonitor(ctx, in.ID, in.MonitorID)
	if err != nil || m.Status == "ended" {
		return err
	}
	_, err = s.runCommand(ctx, in.ID, EndMonitor{ID: in.MonitorID})
	return err
}

// checkMonitorActive returns an error if the supervisor has left the call.
func (s *Service) checkMonitorActive(ctx context.Context, in OneMonitor) error {
	m, err := s.getMonitor(ctx, in.ID, in.MonitorID)
	if err == nil && m.Status == "ended" {
		err = op.State("the supervisor has left the call", m.Status)
	}
	return err
}

func (s *Service) getMonitor(ctx context.Context, callID, id string) (Monitor, error) {
	const q = `SELECT id, call_id, supervisor_id, mode, status, started_at, ended_at FROM monitors
		WHERE org_id = $1 AND call_id = $2 AND id = $3`
	var m Monitor
	var ended db.Time
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, q, access.Org(ctx), callID, id).
		Scan(&m.ID, &m.CallID, &m.SupervisorID, &m.Mode, &m.Status, &m.StartedAt, &ended)
	if db.IsNone(err) {
		return m, op.NotFound("monitor of this call")
	}
	m.EndedAt, m.AudibleTo = ended.Ptr(), audibleTo[m.Mode]
	return m, err
}

// audibleTo lists, for each mode, the sides that hear the supervisor.
var audibleTo = map[string][]string{"listen": {}, "whisper": {"agent"}, "barge": {"agent", "caller"}}
