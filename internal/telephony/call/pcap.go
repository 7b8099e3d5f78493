package call

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Constants of the capture file format (pcap): the magic number for microseconds, and LINKTYPE_RAW, the link type of
// plain IP packets.
const (
	pcapMagic   = 0xa1b2c3d4
	pcapRaw     = 101
	maxPacket   = 65535
	udpHeader   = 8
	protocolUDP = 17
)

// pcap writes messages as a capture file. Each message becomes a UDP datagram between the two addresses, whatever
// transport carried it, so that encrypted and segmented messages are readable too.
func pcap(all []Message) []byte {
	b := binary.LittleEndian.AppendUint32(nil, pcapMagic)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, maxPacket)
	b = binary.LittleEndian.AppendUint32(b, pcapRaw)
	for _, m := range all {
		local, err1 := netip.ParseAddrPort(m.Local)
		remote, err2 := netip.ParseAddrPort(m.Remote)
		if err1 != nil || err2 != nil {
			continue
		}
		from, to := remote, local
		if m.Sent {
			from, to = local, remote
		}
		b = appendPacket(b, m.At, datagram(from, to, []byte(m.Text)))
	}
	return b
}

func appendPacket(b []byte, at time.Time, packet []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(at.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(at.Nanosecond()/1000))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(packet)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(packet)))
	return append(b, packet...)
}

// datagram returns an IP packet with one UDP datagram (RFC 768), truncated to the maximum packet size. The UDP
// checksum is 0.
func datagram(from, to netip.AddrPort, text []byte) []byte {
	text = text[:min(len(text), maxPacket-udpHeader-40)]
	size := udpHeader + len(text)
	var b []byte
	if f, t := from.Addr().Unmap(), to.Addr().Unmap(); f.Is4() && t.Is4() {
		b = append(b, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(20+size))
		b = append(b, 0, 0, 0, 0, 64, protocolUDP, 0, 0)
		b = append(append(b, f.AsSlice()...), t.AsSlice()...)
		binary.BigEndian.PutUint16(b[10:], headerSum(b))
	} else {
		b = append(b, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(size))
		b = append(b, protocolUDP, 64)
		source, target := from.Addr().As16(), to.Addr().As16()
		b = append(append(b, source[:]...), target[:]...)
	}
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	b = binary.BigEndian.AppendUint16(b, 0)
	return append(b, text...)
}

// headerSum returns the checksum of an IPv4 header (RFC 791 §3.1).
func headerSum(header []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
