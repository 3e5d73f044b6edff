// CoreDNS with the few plugins that a fog's cluster DNS needs: a fraction of the usual size, and of the time to build it.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

// The order in which plugins see a query: answers from the cache come before the work of finding them.
func init() {
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "hosts", "kubernetes"}
}

func main() {
	coremain.Run()
}
