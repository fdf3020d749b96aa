// Command echo_server is a peer of echo_nginx: a server on a Unix socket that sends each message back.
//
// A message is its length in four bytes, most significant first, followed by that many bytes. The server reads as much as
// there is, and writes all complete messages back from the buffer that it read them into.
//
// The socket is in a new folder of TMPDIR. A line of the input is answered with its path. At the end of the input the
// server removes both and exits.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const header = 4

// A connection whose message is longer is closed.
const longest = 64 << 20

// The first size of a buffer: more than a socket holds by default.
const firstSize = 256 << 10

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "echo_server:", err)
		os.Exit(1)
	}
}

func run() error {
	// Ctrl-C reaches the whole group of processes. The input ends when the program that started this one does.
	signal.Ignore(syscall.SIGINT, syscall.SIGPIPE)
	folder, err := os.MkdirTemp("", "thalweg-echo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "echo.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go accept(listener)
	fmt.Println(`{"ready": true}`)
	go func() {
		input := bufio.NewScanner(os.Stdin)
		for input.Scan() {
			fmt.Printf("%q\n", path)
		}
		ended <- syscall.SIGTERM
	}()
	<-ended
	return nil
}

func accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(connection)
	}
}

func serve(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, firstSize)
	used := 0
	for {
		got, err := connection.Read(buffer[used:])
		if err != nil {
			return
		}
		used += got
		complete := 0
		for next := messageSize(buffer[complete:used]); next > 0 && next <= used-complete; next = messageSize(buffer[complete:used]) {
			complete += next
		}
		if complete > 0 {
			if _, err := connection.Write(buffer[:complete]); err != nil {
				return
			}
			used = copy(buffer, buffer[complete:used])
		}
		wanted := messageSize(buffer[:used])
		if wanted > longest {
			return
		}
		if wanted > len(buffer) {
			larger := make([]byte, wanted)
			copy(larger, buffer[:used])
			buffer = larger
		}
	}
}

// messageSize returns the bytes of the message at the start of data, header included; 0 if the header is incomplete.
func messageSize(data []byte) int {
	if len(data) < header {
		return 0
	}
	return header + int(binary.BigEndian.Uint32(data))
}
