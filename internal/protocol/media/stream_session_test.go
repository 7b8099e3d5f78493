package media

import (
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/protocol/media/sdp"
)

// If the server is behind a NAT with another public address, both addresses are candidates.
func TestICE_OwnAddressIsCandidate(t *testing.T) {
	t.Parallel()
	for advertise, want := range map[string]int{"198.51.100.7": 2, "127.0.0.1": 1} {
		e := testEngine(t, Config{Advertise: netip.MustParseAddr(advertise)}, newLoop)
		offer := string(openStream(t, e).NewSession(sdp.Profile{Security: sdp.WebRTC}).Offer(sdp.LocalOffer()))
		if n := strings.Count(offer, "a=candidate:"); n != want || !strings.Contains(offer, " "+advertise+" ") {
			t.Errorf("advertised %s: %d candidates, want %d\n%s", advertise, n, want, offer)
		}
	}
}
