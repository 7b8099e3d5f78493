package pbx

import (
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/trunk"
)

// Rules for emergency calls: no audio of ours is played into them, we never end them, and they are admitted under
// overload and during shutdown.

// emergencyLeg returns the leg that rings or talks to an emergency service; nil if there is none.
func (c *liveCall) emergencyLeg() *leg {
	for _, l := range c.legs {
		if l.emergency && !l.over && l.owner.Load() == c {
			return l
		}
	}
	return nil
}

// isEmergency reports whether the call rings or talks to an emergency service.
func (c *liveCall) isEmergency() bool { return c.emergencyLeg() != nil }

// isEmergency reports whether the attempt dials an emergency service. It rings without a time limit then.
func (h *forkedDial) isEmergency() bool { return h.to.isEmergency() }

func (r resolvedDestination) isEmergency() bool { return r.outbound != nil && r.outbound.Emergency }

// wasEmergency reports whether a leg from before a restart dialled an emergency service.
func (c *liveCall) wasEmergency(l *leg) bool {
	return l.trunkID != "" && l.caller.UserID == "" && l.role != "caller" && trunk.ReservedExtension(c.policy.Country, l.number)
}

// maybeEmergency reports whether a call from a phone may be an emergency call. The country of its organisation
// decides later.
func maybeEmergency(in *sip.Inbound) bool {
	return in.TrunkID == "" && trunk.MaybeEmergency(dialled(in.RequestURI))
}

// isEmergencyRefusal reports whether the refused call was an emergency call.
func isEmergencyRefusal(r *Refusal) bool {
	return r != nil && r.Gate != nil && r.Gate.Reason == trunk.EmergencyUnavailable
}
