//go:build !linux

package transport

import "net"

type pendingDatagrams struct{}

func newPendingDatagrams(*net.UDPConn) *pendingDatagrams { return &pendingDatagrams{} }

func (*pendingDatagrams) nextSize() (bytes int, ok bool) { return 0, false }
