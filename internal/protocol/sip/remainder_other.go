//go:build !linux

package sip

import "net"

type remainder struct{}

func newRemainder(*net.UDPConn) *remainder { return &remainder{} }

func (*remainder) ask() (bytes int, ok bool) { return 0, false }
