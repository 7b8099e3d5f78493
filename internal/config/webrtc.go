package config

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"soniq/internal/telephony/device"
)

// This file has the addresses that browsers need to be a phone.

// WebSocketURL returns the public URL of SIP over WebSocket (RFC 7118).
func (c *Config) WebSocketURL() string {
	return "ws" + strings.TrimPrefix(c.BaseURL, "http") + "/ws/sip" // wss for https
}

// turnLife is how long a password for a TURN server holds.
const turnLife = 24 * time.Hour

// WebRTCServers returns the STUN and TURN servers for the browser of a user. TURN servers get a password for a day: the HMAC of the
// user name, which contains the expiry, with the secret that the TURN servers share.
func (c *Config) WebRTCServers(userID string) []device.ICEServer {
	var all []device.ICEServer
	for _, address := range SplitList(c.ICEServers) {
		s := device.ICEServer{URLs: []string{address}}
		if strings.HasPrefix(address, "turn") && c.TURNSecret != "" {
			s.Username = strconv.FormatInt(time.Now().Add(turnLife).Unix(), 10) + ":" + userID
			sum := hmac.New(sha1.New, []byte(c.TURNSecret))
			sum.Write([]byte(s.Username))
			s.Credential = base64.StdEncoding.EncodeToString(sum.Sum(nil))
		}
		all = append(all, s)
	}
	return all
}
