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

// This file says how telephones in pages reach us.

// WebSocketURL is the address of SIP over WebSocket, as pages know it.
func (c *Config) WebSocketURL() string {
	return "ws" + strings.TrimPrefix(c.BaseURL, "http") + "/ws/sip" // wss for https
}

// turnLife is how long a password for a TURN server holds.
const turnLife = 24 * time.Hour

// WebRTCServers are the STUN and TURN servers told to a user, the latter with a password of their own: the time it ends, signed
// with the secret that the servers share.
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
