package sherpatest

import (
	"encoding/binary"
	"math"
)

// message is an encoded protobuf message (field numbers as in onnx.proto3).
type message []byte

func (m message) bytes(field int, b []byte) message {
	m = binary.AppendUvarint(m, uint64(field)<<3|2)
	m = binary.AppendUvarint(m, uint64(len(b)))
	return append(m, b...)
}

func (m message) text(field int, s string) message { return m.bytes(field, []byte(s)) }

func (m message) number(field int, n int64) message {
	m = binary.AppendUvarint(m, uint64(field)<<3)
	return binary.AppendUvarint(m, uint64(n))
}

// Element types of tensors.
const (
	float32s = 1
	int64s   = 7
)

// node returns an operation on named tensors. Its attributes are one or several integers.
func node(kind string, in, out []string, attributes map[string][]int64) message {
	var m message
	for _, name := range in {
		m = m.text(1, name)
	}
	for _, name := range out {
		m = m.text(2, name)
	}
	m = m.text(4, kind)
	for name, values := range attributes {
		a := message{}.text(1, name)
		if len(values) == 1 {
			m = m.bytes(5, a.number(3, values[0]).number(20, 2))
			continue
		}
		for _, n := range values {
			a = a.number(8, n)
		}
		m = m.bytes(5, a.number(20, 7))
	}
	return m
}

// floats returns a constant tensor.
func floats(name string, values []float32, dims ...int64) message {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return tensor(name, float32s, raw, dims)
}

// integers returns a constant vector.
func integers(name string, values ...int64) message {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return tensor(name, int64s, raw, []int64{int64(len(values))})
}

func tensor(name string, kind int64, raw []byte, dims []int64) message {
	var m message
	for _, d := range dims {
		m = m.number(1, d)
	}
	return m.number(2, kind).text(8, name).bytes(9, raw)
}

// value returns the description of an input or output; a dimension of 0 means any length.
func value(name string, kind int64, dims ...int64) message {
	var shape message
	for _, d := range dims {
		if d == 0 {
			shape = shape.bytes(1, message{}.text(2, "any"+name))
			continue
		}
		shape = shape.bytes(1, message{}.number(1, d))
	}
	return message{}.text(1, name).bytes(2, message{}.bytes(1, message{}.number(1, kind).bytes(2, shape)))
}

// graph is a model without its metadata.
type graph struct{ nodes, constants, inputs, outputs []message }

// model encodes a graph, for version 13 of the operators, with metadata.
func (g graph) model(about map[string]string) []byte {
	var m message
	for _, part := range []struct {
		field int
		all   []message
	}{{1, g.nodes}, {5, g.constants}, {11, g.inputs}, {12, g.outputs}} {
		for _, b := range part.all {
			m = m.bytes(part.field, b)
		}
	}
	out := message{}.number(1, 8).bytes(7, m.text(2, "tones")).bytes(8, message{}.number(2, 13))
	for key, text := range about {
		out = out.bytes(14, message{}.text(1, key).text(2, text))
	}
	return out
}
