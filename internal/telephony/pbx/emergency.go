package pbx

import (
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/trunk"
)

// This file is what emergency calls are spared: nothing is played into them, nothing of ours ends them, and they are taken where others are
// turned away.

// helper is the leg of who is called for help, or talked to; nil where nobody is.
func (c *liveCall) helper() *leg {
	for _, l := range c.legs {
		if l.help && !l.over && l.owner.Load() == c {
			return l
		}
	}
	return nil
}

// forHelp reports whether somebody is called for help, or talked to.
func (c *liveCall) forHelp() bool { return c.helper() != nil }

// forHelp reports whether it calls for help: as long as it takes.
func (h *hunt) forHelp() bool { return h.to.forHelp() }

func (r reach) forHelp() bool { return r.exit != nil && r.exit.Emergency }

// wasForHelp reports whether a leg from before a restart was called for help.
func (c *liveCall) wasForHelp(l *leg) bool {
	return l.trunkID != "" && l.caller.UserID == "" && l.role != "caller" && trunk.ReservedExtension(c.policy.Country, l.number)
}

// maybeForHelp reports whether a call of a telephone may be one for help. Whether it is, its organisation's country tells.
func maybeForHelp(in *sip.Inbound) bool {
	return in.TrunkID == "" && trunk.MaybeEmergency(dialled(in.RequestURI))
}

// calledForHelp reports whether a call was refused that was one for help.
func calledForHelp(r *Refusal) bool {
	return r != nil && r.Gate != nil && r.Gate.Reason == trunk.EmergencyNotReached
}
