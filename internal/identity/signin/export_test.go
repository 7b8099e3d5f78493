package signin

import (
	"time"

	"github.com/pquerna/otp/hotp"
)

// Code returns the current code of an authenticator.
func Code(seed string, now time.Time) string {
	code, err := hotp.GenerateCodeCustom(seed, uint64(now.Unix()/totpPeriod), totpOptions)
	if err != nil {
		return "no seed"
	}
	return code
}

// TOTPStep returns the time step of a code.
func TOTPStep(seed []byte, code string, now time.Time, last int64) (int64, bool) {
	return totpStep(seed, code, now, last)
}

// Local returns next if it is a local page to continue with, else the account page.
func Local(next string) string { return local(next) }
