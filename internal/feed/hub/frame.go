package hub

import (
	"encoding/binary"
	"strconv"
	"time"
)

// Type is what a message is. It is its `type` and a metric label.
type Type string

// The closed set of types that the hub sends; what a client did wrong is told by the server in front of it.
const (
	TypeSnapshot  Type = "snapshot"  // all levels of the topic: replaces what the client holds
	TypeUpdate    Type = "update"    // what changed since prev_seq
	TypeStatus    Type = "status"    // how far the topic can be trusted now
	TypeHeartbeat Type = "heartbeat" // nothing came for a while, and the gateway is there
)

// Frame is one message, encoded. It is immutable and shared by all clients that get it: nobody may write to its bytes.
type Frame struct {
	kind   Type
	stream *stream // nil for a message that belongs to no topic
	epoch  string
	seq    uint64 // 0 for a message that is no version
	bytes  []byte // of WebSocket
	head   int    // where the JSON text begins
}

// JSON is the message without a line end.
func (f *Frame) JSON() []byte { return f.bytes[f.head:] }

// WebSocket is the message as one unmasked text frame of RFC 6455, ready to be written as it is.
func (f *Frame) WebSocket() []byte { return f.bytes }

// ID names the version of the topic that the client holds after this message, as "epoch-seq". It is "" for a message
// that changes nothing of what the client holds.
func (f *Frame) ID() string {
	if f.seq == 0 {
		return ""
	}
	return versionID(f.epoch, f.seq)
}

// Type is what the message is; "" for a message of Client.Tell.
func (f *Frame) Type() Type { return f.kind }

// data tells whether the message is a version of its topic.
func (f *Frame) data() bool { return f.seq != 0 }

func versionID(epoch string, seq uint64) string { return epoch + "-" + strconv.FormatUint(seq, 10) }

// RFC 6455 section 5.2: FIN and opcode, then the length in 7 bits, or 126 and 16 bits, or 127 and 64 bits.
const (
	finText    = 0x81
	maxHead    = 10
	length16   = 126
	length64   = 127
	maxLength7 = 125
)

// seal makes a frame of text. It copies: text may be a buffer that is used again.
func seal(text []byte) Frame {
	var head [maxHead]byte
	h := append(head[:0], finText)
	switch n := len(text); {
	case n <= maxLength7:
		h = append(h, byte(n))
	case n <= 1<<16-1:
		h = binary.BigEndian.AppendUint16(append(h, length16), uint16(n))
	default:
		h = binary.BigEndian.AppendUint64(append(h, length64), uint64(n))
	}
	all := make([]byte, 0, len(h)+len(text))
	all = append(append(all, h...), text...)
	return Frame{bytes: all, head: len(h)}
}

// heartbeat is the message that says nothing but that the gateway is there.
func heartbeat(now time.Time) *Frame {
	text := append(make([]byte, 0, 80), `{"type":"heartbeat","sent_at":`...)
	f := seal(append(appendTime(text, now), '}'))
	f.kind = TypeHeartbeat
	return &f
}
