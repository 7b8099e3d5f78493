package pbx

import (
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/trunk"
)

// Rules for emergency calls: no audio of ours is played into them, we never end them, and they are admitted under
// overload and during shutdown.

// emergencyLeg returns the leg that rings or talks to an emergency service; nil if there is none.
func (c *liveCall) helper() *leg {
	for _, l := range c.legs {
		if l.help && !l.over && l.owner.Load() == c {
			return l
		}
	}
	return nil
}

// isEmergency reports whether the call rings or talks to an emergency service.
func (c *liveCall) forHelp() bool { return c.helper() != nil }

// isEmergency reports whether the attempt dials an emergency service. It rings without a time limit then.
func (h *hunt) forHelp() bool { return h.to.forHelp() }

func (r reach) forHelp() bool { return r.exit != nil && r.exit.Emergency }

// wasEmergency reports whether a leg from before a restart dialled an emergency service.
func (c *liveCall) wasForHelp(l *leg) bool {
	return l.trunkID != "" && l.caller.UserID == "" && l.role != "caller" && trunk.ReservedExtension(c.policy.Country, l.number)
}

// maybeEmergency reports whether a call from a phone may be an emergency call. The country of its organisation
// decides later.
func maybeForHelp(in *sip.Inbound) bool {
	return in.TrunkID == "" && trunk.MaybeEmergency(dialled(in.RequestURI))
}

// isEmergencyRefusal reports whether the refused call was an emergency call.
func calledForHelp(r *Refusal) bool {
	return r != nil && r.Gate != nil && r.Gate.Reason == trunk.EmergencyNotReached
}
