// Package phonestate notifies phones of changes by SIP events: waiting messages (MWI, RFC 3842) and the calls of colleagues (BLF, RFC
// 4235).
package phonestate

import (
	"log/slog"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/identity/user"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/directory"
	"soniq/internal/telephony/voicemail"
)

// Config has the services that MessageWaiting and BusyLampField read.
type Config struct {
	DB        *db.DB
	Bus       *bus.Bus
	Directory *directory.Directory
	Devices   *device.Service
	Users     *user.Service
	Agents    *agent.Service
	Voicemail *voicemail.Service
	SIPDomain string
	Log       *slog.Logger
}
