package signin

import "time"

// Code returns the current code of an authenticator.
func Code(seed string, now time.Time) string {
	raw, err := base32Text.DecodeString(seed)
	if err != nil {
		return "no seed"
	}
	return totp(raw, now.Unix()/totpPeriod)
}

// TOTP returns the code of a time step.
func TOTP(seed []byte, step int64) string { return totp(seed, step) }

// Local returns next if it is a local page to continue with, else the account page.
func Local(next string) string { return local(next) }
