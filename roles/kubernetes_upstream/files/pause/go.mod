module fogscale/pause

go 1.24
