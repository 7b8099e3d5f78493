// Package onnx reads the metadata of ONNX model files (onnx.proto3, ModelProto).
package onnx

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The fields of ONNX's ModelProto and StringStringEntryProto that are read (onnx.proto3).
const (
	onnxMetadataProps = 14
	onnxEntryKey      = 1
	onnxEntryValue    = 2
	maxMetadata       = 1 << 20 // bytes of one entry; the largest known are tables of means with some thousand numbers
)

var errNotONNX = errors.New("is no ONNX model")

// Metadata returns the metadata_props of a model without reading its weights.
func Metadata(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &onnxReader{file: f, Reader: bufio.NewReader(f)}
	found, fields := map[string]string{}, 0
	for ; ; fields++ {
		number, body, err := m.field(onnxMetadataProps)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s %w", path, err)
		}
		if number == onnxMetadataProps {
			key, value := onnxEntry(body)
			found[key] = value
		}
	}
	if fields == 0 {
		return nil, fmt.Errorf("%s %w", path, errNotONNX)
	}
	return found, nil
}

// onnxReader reads the fields of a protobuf message from a file.
type onnxReader struct {
	file *os.File
	*bufio.Reader
}

// field reads the next field. It returns the body only if the field has the wanted number, and skips other bodies.
func (r *onnxReader) field(wanted uint64) (number uint64, body []byte, err error) {
	tag, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, nil, err
	}
	number = tag >> 3
	var size uint64
	switch tag & 7 {
	case 0:
		_, err = binary.ReadUvarint(r)
		return number, nil, truncatedField(err)
	case 1:
		size = 8
	case 5:
		size = 4
	case 2:
		if size, err = binary.ReadUvarint(r); err != nil {
			return 0, nil, truncatedField(err)
		}
	default:
		return 0, nil, errNotONNX
	}
	if number == 0 || size > 1<<40 || number == wanted && size > maxMetadata {
		return 0, nil, errNotONNX
	}
	if number != wanted {
		return number, nil, truncatedField(r.skip(int64(size)))
	}
	body = make([]byte, size)
	_, err = io.ReadFull(r, body)
	return number, body, truncatedField(err)
}

// skip skips n bytes; it seeks past those beyond the buffer instead of reading them.
func (r *onnxReader) skip(n int64) error {
	if n <= int64(r.Buffered()) {
		_, err := r.Discard(int(n))
		return err
	}
	at, err := r.file.Seek(n-int64(r.Buffered()), io.SeekCurrent)
	if err != nil {
		return err
	}
	if info, err := r.file.Stat(); err == nil && at > info.Size() {
		return errNotONNX
	}
	r.Reset(r.file)
	return nil
}

// truncatedField converts the end of the file within a field to errNotONNX.
func truncatedField(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errNotONNX
	}
	return err
}

// onnxEntry reads a key and its value. Of a damaged entry it returns the part before the damage.
func onnxEntry(b []byte) (key, value string) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag&7 != 2 {
			return key, value
		}
		size, m := binary.Uvarint(b[n:])
		if m <= 0 || size > uint64(len(b)-n-m) {
			return key, value
		}
		text := string(b[n+m : n+m+int(size)])
		b = b[n+m+int(size):]
		switch tag >> 3 {
		case onnxEntryKey:
			key = text
		case onnxEntryValue:
			value = text
		}
	}
	return key, value
}
