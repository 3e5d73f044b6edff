// What every pod's sandbox runs, and how one looks at the fog from within a pod: it waits; `pause lookup NAME` prints the
// addresses of a name, `pause serve PORT` answers with the pod's host name, `pause get URL` prints an answer, and
// `pause try URL…` tries each and prints its HTTP status, or `closed`, `silent` or `cut` (see fog/checks/doors.py); of
// kafka:// and kafkas:// also `accepted` or `refused`, as fog/checks/kafka_door.py does it.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	patience        = 5 * time.Second
	longestAttempt  = 15 * time.Second
	longestDialling = 4 * time.Second
)

func main() {
	if len(os.Args) == 1 {
		wait()
		return
	}
	if os.Args[1] == "try" {
		try(os.Args[2:])
		return
	}
	if len(os.Args) != 3 {
		fail(fmt.Errorf("give nothing, or: lookup NAME, serve PORT, get URL, try URL…"))
	}
	var err error
	switch argument := os.Args[2]; os.Args[1] {
	case "lookup":
		err = lookup(argument)
	case "serve":
		err = serve(argument)
	case "get":
		err = get(argument)
	default:
		err = fmt.Errorf("%s: not one of lookup, serve, get, try", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A sandbox's first process ends on request, and takes in the children that others leave behind.
func wait() {
	events := make(chan os.Signal, 16)
	signal.Notify(events, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for event := range events {
		if event != syscall.SIGCHLD {
			return
		}
		for {
			if child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); child <= 0 || err != nil {
				break
			}
		}
	}
}

func lookup(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	for _, address := range addresses {
		fmt.Println(address)
	}
	return err
}

func serve(port string) error {
	go func() { wait(); os.Exit(0) }()
	return http.ListenAndServe(":"+port, http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		fmt.Fprintln(answer, name)
	}))
}

func get(url string) error {
	client := http.Client{Timeout: patience}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

// All at once, one line each in their order. Whom it talks to is of no interest, only whether it is let in.
func try(urls []string) {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext:     (&net.Dialer{Timeout: longestDialling}).DialContext,
	}
	client := http.Client{Timeout: longestAttempt, Transport: transport}
	outcomes := make([]string, len(urls))
	var all sync.WaitGroup
	for i, url := range urls {
		all.Add(1)
		go func() {
			defer all.Done()
			if strings.HasPrefix(url, "kafka") {
				outcomes[i] = knock(url)
			} else {
				outcomes[i] = outcome(client.Get(url))
			}
		}()
	}
	all.Wait()
	for _, each := range outcomes {
		fmt.Println(each)
	}
}

func outcome(answer *http.Response, err error) string {
	var network net.Error
	var operation *net.OpError
	switch {
	case err == nil:
		answer.Body.Close()
		return strconv.Itoa(answer.StatusCode)
	case errors.As(err, &network) && network.Timeout():
		return "silent"
	case errors.As(err, &operation) && operation.Op == "dial":
		return "closed"
	default:
		return "cut"
	}
}
