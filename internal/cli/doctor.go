package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/contactcenter/flow"
	"soniq/internal/control"
	"soniq/internal/identity/org"
	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/speechmodel"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/messaging/smscarrier"
	"soniq/internal/telephony/trunk"
)

type doctorOptions struct{ settings *config.Flags }

func newDoctor() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use: "doctor", Short: "check settings, ports, disk, database and engines, and print a remedy for each fault",
		Example: "  soniq doctor --config /etc/soniq.conf", Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	o.settings = command.AddSettings(cmd)
	return cmd
}

func (o *doctorOptions) run(ctx context.Context, out io.Writer) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	d := &doctor{out: out, config: c}
	d.settings()
	running := d.running(ctx)
	if !running {
		d.ports()
	}
	d.folder()
	d.database(ctx, running)
	d.system()
	d.engines(ctx)
	d.links()
	d.phones()
	d.stir()
	if d.wrong > 0 {
		fmt.Fprintf(d.out, "\n%d problem(s) keep soniq from working; %d hint(s)\n", d.wrong, d.hints)
		return ErrFailed
	}
	fmt.Fprintf(d.out, "\nnothing is wrong; %d hint(s)\n", d.hints)
	return nil
}

// doctor checks a machine and prints the results.
type doctor struct {
	out          io.Writer
	config       config.Config
	wrong, hints int
}

func (d *doctor) ok(format string, args ...any) { fmt.Fprintf(d.out, "  ok    "+format+"\n", args...) }

// hint prints a limitation and its remedy.
func (d *doctor) hint(what, do string) {
	d.hints++
	fmt.Fprintf(d.out, "  hint  %s\n          %s\n", what, do)
}

// bad prints a fault that keeps soniq from working, and its remedy.
func (d *doctor) bad(what, do string) {
	d.wrong++
	fmt.Fprintf(d.out, "  BAD   %s\n          %s\n", what, do)
}

func (d *doctor) title(text string) { fmt.Fprintln(d.out, text) }

// settings prints all settings in force. Secrets are hidden.
func (d *doctor) settings() {
	d.title("settings in force")
	v := reflect.ValueOf(d.config)
	for _, s := range config.Settings() {
		text := fmt.Sprint(v.Field(s.Index).Interface())
		if s.Secret && text != "" {
			text = "(hidden)"
		}
		fmt.Fprintf(d.out, "  %-18s %s\n", s.Flag, config.Redact(text))
	}
	for _, text := range unknownVariables() {
		d.hint(text, "soniq help serve lists the settings; the variable of --rtp-ports is SONIQ_RTP_PORTS")
	}
}

func (d *doctor) running(ctx context.Context) bool {
	d.title("this data folder")
	var s struct {
		Version, HTTP, SIP string
		Calls              int
		Without            []trunk.OrgWithoutEmergencyCalls `json:"without_emergency"`
		Unreachable        []trunk.UnreachableExtension     `json:"unreachable_extensions"`
		Silent             []smscarrier.FailingCarrier      `json:"sms_carriers"`
		Unspoken           []flow.Unspoken                  `json:"unspoken"`
		Unredactable       []org.UnredactableAudio          `json:"unredactable_audio"`
		Clock              string                           // reason why the clock is not trusted; "" if it is
		Restored           string                           // notice of a restored copy that is not confirmed; "" if it is none
	}
	if err := control.Call(ctx, d.config.Data, "status", nil, &s); err != nil {
		d.ok("no soniq runs on it")
		return false
	}
	d.ok("soniq %s runs on it: http %s, sip %s, %d call(s) in progress", s.Version, s.HTTP, s.SIP, s.Calls)
	d.emergency(s.Without)
	d.extensions(s.Unreachable)
	d.carriers(s.Silent)
	d.unspoken(s.Unspoken)
	d.unredactable(s.Unredactable)
	d.restored(s.Restored)
	d.clock(s.Clock)
	return true
}

func (d *doctor) ports() {
	d.title("ports")
	d.port("--http", "tcp", d.config.HTTP)
	for _, address := range config.SplitList(d.config.SIP) {
		d.port("--sip", "tcp", address)
		d.port("--sip", "udp", address)
	}
	if d.config.SIPTLS != "" {
		d.port("--sip-tls", "tcp", d.config.SIPTLS)
	}
	for flag, address := range map[string]string{"--https": d.config.HTTPS, "--smpp": d.config.SMPP, "--smpps": d.config.SMPPS} {
		if address != "" {
			d.port(flag, "tcp", address)
		}
	}
	low, high, err := d.config.RTPPortRange()
	if err == nil && high > 0 && high-low < 200 {
		d.hint(fmt.Sprintf("--rtp-ports %s carry %d calls at most", d.config.RTPPorts, (high-low)/4),
			"each call takes four ports; give a wider range")
	}
	if at, _ := config.BindAddress(d.config.SIP); !at.IsLoopback() && d.config.PublicIP == "" {
		d.hint("--public-ip is not set", "set it when phones or carriers reach this machine through NAT, or they will send audio to an inside address")
	}
}

func (d *doctor) port(flag, network, address string) {
	var closer io.Closer
	var err error
	if network == "udp" {
		closer, err = net.ListenPacket("udp", address)
	} else {
		closer, err = net.Listen("tcp", address)
	}
	if err != nil {
		d.bad(fmt.Sprintf("%s %s (%s) cannot be used: %v", flag, address, network, err), "stop what uses it, or choose another port with "+
			flag)
		return
	}
	_ = closer.Close()
	d.ok("%s %s (%s) is free", flag, address, network)
}

func (d *doctor) folder() {
	d.title("disk")
	there := existing(d.config.Data)
	probe, err := os.CreateTemp(there, ".doctor-*")
	if err != nil {
		d.bad(fmt.Sprintf("data folder %s cannot be written: %v", d.config.Data, err),
			"check the owner and mode of "+there+", or choose another with --data")
		return
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	if info, err := os.Stat(d.config.Data); err == nil && info.Mode().Perm()&0o022 != 0 {
		d.bad(fmt.Sprintf("others may write in the data folder %s", d.config.Data), "check that all files in it are yours, then: chmod 700 "+
			d.config.Data)
	}
	var fs syscall.Statfs_t
	if syscall.Statfs(there, &fs) != nil {
		return
	}
	free := int64(fs.Bavail) * int64(fs.Bsize) //nolint:unconvert // Bsize is uint32 on Darwin
	hours := free / (16_000 * 3600)
	switch {
	case free < 100<<20:
		d.bad(fmt.Sprintf("only %d MB are free in %s", free>>20, d.config.Data), "make room: without it nothing can be written down")
	case free < 2<<30:
		d.hint(fmt.Sprintf("%d MB are free in %s", free>>20, d.config.Data), fmt.Sprintf("that is about %d hours of recorded calls", hours))
	default:
		d.ok("%d GB are free in %s: about %d hours of recorded calls", free>>30, d.config.Data, hours)
	}
}

// existing returns the folder, or its nearest parent that exists. The check creates no folder.
func existing(folder string) string {
	for {
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}

// maxNamed is the number of organisations or carriers that are listed one by one.
const maxNamed = 10

// carriers prints the SMS carriers that accept no messages.
func (d *doctor) carriers(silent []smscarrier.FailingCarrier) {
	for i, c := range silent {
		if i == maxNamed {
			d.hint(fmt.Sprintf("and %d more carriers of messages", len(silent)-i), "GET /sms/carriers tells the status of each")
			return
		}
		d.hint(fmt.Sprintf("the carrier of messages %q (%s of %s) is %s: %s", c.Name, c.ID, c.Org, c.Status, c.Error),
			"messages wait for it up to four hours; POST /sms/carriers/"+c.ID+"/test asks it again")
	}
}

// system checks limits of the machine that reduce the number of calls.
func (d *doctor) system() {
	d.title("system")
	if now := time.Now(); now.Year() < 2025 {
		d.bad("the clock says "+now.Format(time.RFC3339), "set it: records, signatures and expiry depend on it")
	}
	if b, err := os.ReadFile("/proc/sys/net/core/rmem_max"); err == nil {
		if n, _ := strconv.Atoi(strings.TrimSpace(string(b))); n < 4<<20 && os.Geteuid() != 0 {
			d.hint(fmt.Sprintf("net.core.rmem_max is %d", n),
				"for more than a few hundred calls per second: sysctl -w net.core.rmem_max=4194304")
		}
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		if limit.Max < 16384 {
			d.hint(fmt.Sprintf("at most %d files may be open", limit.Max),
				fmt.Sprintf("each call takes up to five: raise it with ulimit -n for more than %d calls", limit.Max/5))
		} else {
			d.ok("%d cores, %d files may be open", runtime.NumCPU(), limit.Max)
		}
	}
}

func (d *doctor) engines(ctx context.Context) {
	d.title("understanding calls")
	dir, sherpa := strings.CutPrefix(d.config.Transcriber, speech.SherpaPrefix)
	switch {
	case sherpa:
		d.sherpa(ctx, dir)
	case d.config.Transcriber == "off":
		d.ok("transcription is switched off")
	case d.config.Transcriber == "builtin" && speechmodel.Find() != "":
		d.sherpaWith(ctx, speech.NewEnglishSherpa(nil, speechmodel.Find(), 1))
	case d.config.Transcriber == "builtin", d.config.Transcriber == "pocketsphinx":
		s := speech.NewPocketSphinx(nil, 1)
		defer s.Close()
		if err := s.Ready(ctx); err != nil {
			d.missing(err)
		} else {
			e := s.Engine()
			d.ok("speech is recognised by %s %s", e.Name, e.Model)
		}
		if d.config.Transcriber == "builtin" {
			d.hint("of human voices on the telephone about every third word will be wrong",
				"soniq speech-model install fetches a model (85 MB) that gets most words right")
		}
	default:
		d.ok("speech is recognised by %s (asked at the first call)", d.config.Transcriber)
	}
	d.voice(ctx)
}

// sherpa loads the operator's model as a recognition worker does.
func (d *doctor) sherpa(ctx context.Context, dir string) {
	d.sherpaWith(ctx, speech.NewSherpa(nil, dir, d.config.Sherpa, 1))
}

// sherpaWith loads a model and ends the worker that loaded it.
func (d *doctor) sherpaWith(ctx context.Context, s *speech.Sherpa) {
	defer s.Close()
	if err := s.Ready(ctx); err != nil {
		d.missing(err)
		return
	}
	e := s.Engine()
	d.ok("speech is recognised by %s %s, %s; each of %d worker(s), and one more for callers in menus, takes %d MB before it listens",
		e.Name, e.Version, e.Model, speech.DefaultWorkers(), s.Memory()>>20)
}

// voice checks the text-to-speech engine.
func (d *doctor) voice(ctx context.Context) {
	switch d.config.Voice {
	case "off":
		d.ok("text to speech is switched off")
	case "builtin":
		f := speech.NewFlite(nil)
		defer f.Close()
		if err := f.Ready(ctx); err == nil {
			d.ok("announcements are spoken by %s", f.Identity())
		} else if m, ok := transcript.AsMissingDependency(err); ok {
			d.hint("announcements cannot be spoken: "+m.Problem, m.Remedy)
		} else {
			d.hint("announcements cannot be spoken: "+err.Error(), "see the log of the speaking process")
		}
	default:
		d.ok("announcements are spoken by %s (asked at the first text)", d.config.Voice)
	}
}

func (d *doctor) missing(err error) {
	if m, ok := transcript.AsMissingDependency(err); ok {
		d.hint("calls will not be transcribed: "+m.Problem, m.Remedy)
		return
	}
	d.hint("calls will not be transcribed: "+err.Error(), "see the log of the speech worker")
}
