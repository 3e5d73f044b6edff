// A stranger at Kafka's door, by Kafka's own protocol: asks for topics without a word of who asks, or, with a name in the
// URL, asks to be let in by SCRAM, with a proof that is wrong whatever the password.
package main

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

const (
	metadata     = 3 // Kafka's numbers of requests
	handshake    = 17
	authenticate = 36
	mechanism    = "SCRAM-SHA-512"
	proofBytes   = 64 // as long as a SHA-512
	longestReply = 1 << 20
)

func knock(address string) string {
	place, err := url.Parse(address)
	if err != nil {
		return "cut"
	}
	connection, err := net.DialTimeout("tcp", place.Host, longestDialling)
	if err != nil {
		return outcome(nil, err)
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(longestAttempt))
	if place.Scheme == "kafkas" {
		connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
	}
	if user := place.User.Username(); user != "" {
		return asStranger(letIn(connection, user))
	}
	_, err = ask(connection, metadata, 5, []byte{0xff, 0xff, 0xff, 0xff, 0}) // all topics, and no new ones
	return asStranger(true, err)
}

func asStranger(accepted bool, err error) string {
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return "silent"
	case err != nil:
		return "cut"
	case accepted:
		return "accepted"
	default:
		return "refused"
	}
}

func letIn(connection net.Conn, user string) (bool, error) {
	told, err := ask(connection, handshake, 1, text(mechanism))
	if err != nil || code(told) != 0 {
		return false, err
	}
	failed, words, err := say(connection, "n,,n="+user+",r="+drawn(18))
	if err != nil || failed {
		return false, err
	}
	nonce, _, _ := strings.Cut(strings.TrimPrefix(words, "r="), ",")
	failed, _, err = say(connection, "c=biws,r="+nonce+",p="+drawn(proofBytes))
	return !failed, err
}

func say(connection net.Conn, words string) (failed bool, answer string, err error) {
	body := binary.BigEndian.AppendUint32(nil, uint32(len(words)))
	told, err := ask(connection, authenticate, 0, append(body, words...))
	if err != nil || code(told) != 0 {
		return true, "", err
	}
	reason := 4
	if length := int16(binary.BigEndian.Uint16(told[2:4])); length > 0 {
		reason += int(length)
	}
	if len(told) < reason+4 {
		return true, "", io.ErrUnexpectedEOF
	}
	return false, string(told[reason+4:]), nil
}

// What the broker answers, without its length and the request's number.
func ask(connection net.Conn, kind, version uint16, body []byte) ([]byte, error) {
	header := binary.BigEndian.AppendUint16(nil, kind)
	header = binary.BigEndian.AppendUint16(header, version)
	header = binary.BigEndian.AppendUint32(header, 1)
	header = append(header, text("stranger")...)
	request := binary.BigEndian.AppendUint32(nil, uint32(len(header)+len(body)))
	if _, err := connection.Write(append(append(request, header...), body...)); err != nil {
		return nil, err
	}
	length := make([]byte, 4)
	if _, err := io.ReadFull(connection, length); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length)
	if size < 8 || size > longestReply {
		return nil, io.ErrUnexpectedEOF
	}
	told := make([]byte, size)
	_, err := io.ReadFull(connection, told)
	return told[4:], err
}

func code(told []byte) uint16 { return binary.BigEndian.Uint16(told[:2]) }

func text(value string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(value))), value...)
}

func drawn(length int) string {
	content := make([]byte, length)
	rand.Read(content)
	return base64.StdEncoding.EncodeToString(content)
}
